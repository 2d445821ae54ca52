// Counts down on two servers that share one Postgres. A run goes on at the other one when a server or worker is killed.
//
// $DB is the address of an empty database. Each line runs in a terminal of its own:
//
// kagzi server --db "$DB" --listen 127.0.0.1:50051 --http off
// kagzi server --db "$DB" --listen 127.0.0.1:50061 --http off
// WORKER=one KAGZI_ADDRESS=127.0.0.1:50051 node build/examples/twoservers.js
// WORKER=two KAGZI_ADDRESS=127.0.0.1:50061 node build/examples/twoservers.js
// KAGZI_ADDRESS=127.0.0.1:50061 node build/examples/twoservers.js start 30   prints who took each step
import { Client, serve, workflow } from '@kagzi/sdk';
import { isMain } from './main.js';

/** Returns the worker that took each step, in order. */
export const countdown = workflow('countdown', { queue: 'countdowns' }, async (run, n: number): Promise<string[]> => {
  const workers: string[] = [];
  while (workers.length < n) {
    const { workerId } = run.info; // of this activation; steps that are recorded keep theirs
    workers.push(await run.step('count', () => workerId));
    await run.sleep('second', '1s'); // afterwards whichever worker is free goes on
  }
  return workers;
});

if (isMain(import.meta.url)) {
  const [command, n] = process.argv.slice(2);
  if (command === 'start') {
    const client = new Client();
    const run = await client.start(countdown, Number(n));
    console.log('started', run.id);
    console.log('counted by', (await run.result()).join(', ')); // the wait outlasts restarts of the server
    client.close();
  } else await serve([countdown], { workerId: process.env['WORKER'] ?? '' });
}
