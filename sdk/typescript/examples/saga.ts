// Processes orders: charges, reserves, ships. When a step fails for good, or the run is cancelled, it undoes what was done,
// last first.
//
// node build/examples/saga.js                     runs a worker
// node build/examples/saga.js start ORDER [SKU]   starts a run; the SKU "piano" cannot be shipped
import { Client, NonRetryable, StepError, serve, workflow } from '@kagzi/sdk';
import { isMain } from './main.js';

export interface Order {
  id: string;
  sku: string;
  /** Seconds to cancel in (10). */
  coolOff?: number;
}

export interface Receipt {
  charge: string;
  parcel: string;
}

/** Stands for the bank, the warehouse and the carrier. Undoing what was never done must be harmless. */
function say(what: string, order: Order): string {
  console.log(`${what} ${order.sku} of order ${order.id}`);
  return `${what} ${order.id}`;
}

function ship(order: Order): string {
  if (order.sku === 'piano') throw new NonRetryable('carrier: too heavy');
  return say('shipped', order);
}

export const processOrder = workflow('order', { queue: 'orders' }, async (run, order: Order): Promise<Receipt> => {
  const undos: [string, () => string][] = []; // every replay builds it again
  try {
    undos.push(['refund', () => say('refunded', order)]); // first: a step cut short may have had its effect
    const charge = await run.step('charge', () => say('charged', order));
    undos.push(['release', () => say('released', order)]);
    await run.step('reserve', () => say('reserved', order));
    await run.sleep('cool-off', 1000 * (order.coolOff ?? 10)); // returns at once when the run is cancelled
    return { charge, parcel: await run.step('ship', () => ship(order)) };
  } catch (e) {
    if (e instanceof StepError) {
      await run.cleanup(async (clean) => {
        // Cancelled is a StepError, too. Each is tried until it works.
        for (const [name, undo] of undos.reverse()) await clean.step(name, undo, { retry: { attempts: -1 } });
      });
    }
    throw e;
  }
});

if (isMain(import.meta.url)) {
  const [command, id = '', sku = 'book'] = process.argv.slice(2);
  if (command === 'start') {
    const client = new Client();
    console.log(await (await client.start(processOrder, { id, sku }, { id })).result());
    client.close();
  } else await serve([processOrder]);
}
