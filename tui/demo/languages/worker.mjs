// The TypeScript SDK's worker of `kagzi demo`: worker.mjs ADDRESS NAME LEDGER. It ends when its standard input does.
import { appendFileSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// The package is that of the folder in which the demo was started; this file lies elsewhere.
const sdk = createRequire(join(process.cwd(), 'here')).resolve('@kagzi/sdk');
const { Worker, workflow } = await import(pathToFileURL(sdk).href);
const [address, name, ledger] = process.argv.slice(2);

/** Writes down that code of a step began. The first time it may wait to be killed, however slow the machine is. */
async function enter(step, waits) {
  const file = join(ledger, `${step.runId}.ledger`);
  appendFileSync(file, `${step.step} ${name} ${process.pid}\n`);
  const lines = readFileSync(file, 'utf8').split('\n');
  const times = lines.filter((line) => line.startsWith(`${step.step} `)).length;
  if (waits && times === 1) await new Promise((done) => setTimeout(done, 60_000));
}

const review = workflow('claim-review', { queue: 'demo-typescript' }, async (run, label) => {
  await run.step('check', (step) => enter(step, true));
  const offer = await run.signal('offer'); // from the Python parent
  return run.step('decide', async (step) => {
    await enter(step, false);
    return { label, offer, approved: true };
  });
});

const options = { profile: 'off', address, workerId: name, handleSignals: false, drainTimeout: '2s' };
const worker = new Worker([review], options);
void worker.registered.then(() => console.log('worker ready'));
process.stdin.resume().on('end', () => worker.stop());
await worker.run();
process.exit(); // its standard input may still be open when the server refused it
