// The TypeScript SDK's worker for the bench: tui/bench/WORKERS.md says what it has to do.
//
// kagzi bench --workload W1,W2,W3,W5 --worker 'node sdk/typescript/build/bench/worker.js'
import { crc32 } from 'node:zlib';
import { type Run, Worker, textLog, workflow } from '@kagzi/sdk';

const BLOB = 64 << 10;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.repeat(BLOB / 64);

/** The input of most types. */
interface Job {
  seed: number;
  steps: number;
}

const value = (run: Run, job: Job, i: number): Promise<number> => run.step(`step-${i + 1}`, () => job.seed + i);
const numbers = (job: Job): number[] => Array.from({ length: job.steps }, (_, i) => i);

const empty = workflow('bench.empty', (_, seed: number) => seed);

const steps = workflow('bench.steps', async (run, job: Job) => {
  let total = 0;
  for (let i = 0; i < job.steps; i++) total += await value(run, job, i);
  return total;
});

const parallel = workflow('bench.parallel', async (run, job: Job) => {
  const all = await Promise.all(numbers(job).map((i) => value(run, job, i)));
  return all.reduce((sum, n) => sum + n, 0);
});

const blobs = workflow('bench.blobs', async (run, job: Job) => {
  let total = 0;
  for (const i of numbers(job)) {
    const head = `${job.seed}/${i}:`;
    const text = await run.step(`step-${i + 1}`, () => head + LETTERS.slice(0, BLOB - 2 - head.length));
    total = crc32(text, total);
  }
  return total;
});

const parent = workflow('bench.parent', async (run, job: Job) => {
  const children = await Promise.all(numbers(job).map((i) => run.startChild(`step-${i + 1}`, empty, job.seed + i)));
  return (await run.waitAll(children)).reduce((sum, n) => sum + n, 0);
});

const retried = workflow('bench.retried', async (run, job: Job) => {
  let total = 0;
  for (const i of numbers(job)) {
    const once = (attempt: number): number => {
      if (attempt === 1) throw new Error('the first attempt fails');
      return job.seed + i;
    };
    total += await run.step(`step-${i + 1}`, (s) => once(s.attempt), { retry: { initial: 1, jitter: -1 } });
  }
  return total;
});

const served = { empty, steps, parallel, blobs, parent, retried };
const { KAGZI_BENCH_TYPES = '', KAGZI_BENCH_QUEUE = '', KAGZI_BENCH_SLOTS = '100' } = process.env;
const wanted = KAGZI_BENCH_TYPES.split(',').map((type) => {
  const found = Object.values(served).find((one) => one.name === type);
  if (!found) throw new Error(`this worker does not serve ${type}; measure other workloads with it`);
  return found;
});
const options = { queue: KAGZI_BENCH_QUEUE, maxConcurrent: Number(KAGZI_BENCH_SLOTS), drainTimeout: '2s' } as const;
const worker = new Worker(wanted, { ...options, log: textLog('error') });
process.stdin.resume().on('end', () => worker.stop()); // the bench has ended
void worker.registered.then(() => console.log('worker ready'));
await worker.run();
process.exit();
