// Waits for a person: a purchase goes on when somebody has decided, and is dropped when nobody has within two days.
//
// node build/examples/approval.js                      runs a worker
// node build/examples/approval.js start ORDER          starts a run
// node build/examples/approval.js decide ORDER yes|no  delivers the decision, and prints how the run ended
import { userInfo } from 'node:os';
import { Client, serve, workflow } from '@kagzi/sdk';
import { isMain } from './main.js';

export interface Decision {
  approved: boolean;
  by: string;
}

export const purchase = workflow('purchase', { queue: 'purchases' }, async (run, order: string): Promise<string> => {
  await run.step('ask', () => console.log(`please decide about ${order}`));
  run.note('waits for a decision'); // shown in lists of runs
  const first = await run.first({ decision: run.signal<Decision>('decision'), late: run.sleep('limit', '2d') });
  if (first.key === 'late') return `nobody decided about ${order}`;
  const { approved, by } = await first.promise;
  if (!approved) return `${order} was declined by ${by}`;
  return run.step('buy', () => `${order} was bought for ${by}`);
});

if (isMain(import.meta.url)) {
  const [command, order = '', answer] = process.argv.slice(2);
  if (command === 'start' || command === 'decide') {
    const client = new Client();
    if (command === 'start') console.log('started', (await client.start(purchase, order, { id: order })).id);
    else {
      const run = client.run((await client.getById(order)).runId, purchase);
      await run.signal('decision', { approved: answer === 'yes', by: userInfo().username } satisfies Decision);
      console.log(await run.result());
    }
    client.close();
  } else await serve([purchase]);
}
