// The snippets of the guide in sdk/guide that no other example has; tests/examples.test.ts runs them.
import { AESCodec, Client, Failed, type Interceptor, type RunHandle, StepError, Worker, workflow } from '@kagzi/sdk';

/** Stands for a bank. */
function bank(card: string, key: string): string {
  if (card === 'declined') throw new Failed('card declined', { type: 'card_declined' });
  if (card === 'busy') throw new Failed('bank is busy', { retryAfter: '5m' }); // in place of the policy's delay
  return `${card} ${key.split('/')[1] ?? ''}`;
}

export const pay = workflow('pay', async (run, card: string): Promise<string> => {
  const retry = { attempts: 10, nonRetryable: ['card_declined'] };
  try {
    return await run.step('charge', (step) => bank(card, step.idempotencyKey), { retry, timeout: '1m' });
  } catch (e) {
    if (e instanceof StepError && e.type === 'card_declined') return 'another card is needed';
    throw e;
  }
});

export const prepare = workflow('prepare', async (run, order: string): Promise<string[]> => {
  const packed = run.branch(async (run) => {
    await run.sleep('pack', '1h');
    return `${order} is packed`;
  });
  return Promise.all([packed, run.step('invoice', () => `invoice for ${order}`)]);
});

export const approve = workflow('approve', async (run, order: string): Promise<string> => {
  const first = await run.first({ answer: run.signal<boolean>('answer'), late: run.sleep('late', '2d') });
  if (first.key === 'late') return `nobody answered for ${order}`;
  return `${order} approved: ${await first.promise}`;
});

export interface Total {
  days: number;
  sum: number;
}

export const ledger = workflow('ledger', async (run, total: Total): Promise<Total> => {
  const next = { ...total };
  for (let day = 0; day < 7; day++) {
    next.sum += await run.step('collect', () => 1);
    next.days++;
    await run.sleep('night', '1d');
  }
  return run.continueAsNew(next); // throws, and has to pass
});

export const deliver = workflow('deliver', async (run, order: string): Promise<string> => {
  if (run.patched('check-address')) await run.step('check-address', () => null);
  return run.step('ship', () => `parcel of ${order}`);
});

export function worker(labels: Record<string, string>): Worker {
  const limits = { maxConcurrent: 50, typeLimits: { deliver: 5 }, drainTimeout: '25s' } as const;
  return new Worker([prepare, deliver], { queue: 'orders', queues: ['orders-bulk'], labels, ...limits });
}

export function startOrder(client: Client, id: string): Promise<RunHandle<string[]>> {
  return client.start(prepare, id, { id: `order-${id}`, executionTimeout: '1d', tags: { customer: 'ada' } });
}

/** Counts runs, and takes the time of steps: `new Worker([…], { interceptors: [measured(figures)] })`. */
export function measured(figures: { began: number; ended: number; steps: number }): Interceptor {
  return {
    async run({ replaying, check }, next) {
      if (!replaying && !check) figures.began++;
      const result = await next(); // does not return when the run is parked
      if (!check) figures.ended++;
      return result;
    },
    async step(_, next) {
      const began = performance.now();
      try {
        return await next();
      } finally {
        figures.steps += performance.now() - began;
      }
    },
  };
}

/** Makes a client whose payloads the server cannot read. */
export function encrypted(key: Uint8Array): Client {
  return new Client({ codec: new AESCodec({ '2026': key }, '2026') });
}
