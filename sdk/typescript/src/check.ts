// `kagzi check`: replays the open runs of a worker's types against its code, and prints those that diverge.
import * as v1 from './v1/index.js';
import { Client } from './client.js';
import { printable } from './convert.js';
import { ConfigError, KagziError, ServerError } from './errors.js';
import type { RunDetails } from './handle.js';
import { Divergence, RunRecord, replay } from './replay.js';
import type { Worker } from './worker.js';

const ARGUMENT = '-kagzi-check';
const VARIABLE = 'KAGZI_CHECK';
/** Of one run. */
const LIMIT = '60s';
/** Reads of a run that changes while it is read. */
const LOOKS = 5;
const PAGE = 200;
const ENDED = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT', 'TERMINATED']);

// A program that this one starts with the rest of its arguments then checks, too.
const at = process.argv.indexOf(ARGUMENT, 2);
if (at > 0) {
  process.argv.splice(at, 1);
  process.env[VARIABLE] = '1';
}

/** Whether the program was started by `kagzi check`. */
export function isCheck(): boolean {
  return process.env[VARIABLE] === '1';
}

/**
 * Replays the open runs of the worker's types and queues, and prints those that diverge; true if none does. It registers
 * nothing, runs no step and changes nothing on the server.
 */
export async function check(worker: Worker, hello: v1.RegisterRequest): Promise<boolean> {
  const { addresses, namespace, apiKey, tls } = worker.session.endpoint;
  const client = new Client({ profile: 'off', address: addresses.join(','), namespace, apiKey, ...(tls && { tls }) });
  let [checked, diverged, stuck] = [0, 0, 0];
  try {
    const open = client.list({
      status: ['PENDING', 'RUNNING', 'SLEEPING'],
      workflowTypes: hello.workflowTypes,
      queues: [hello.taskQueue, ...hello.taskQueues],
      pageSize: PAGE,
    });
    for await (const { runId } of open) {
      const outcome = await checkOne(worker, client, runId);
      if (outcome === 'ended') continue;
      checked++;
      if (outcome === 'fits') continue;
      if (outcome instanceof Divergence) diverged++;
      else stuck++;
      console.log(printable(outcome.message));
    }
    if (checked === 0 && namespace !== 'default') await namespaceThere(client);
  } finally {
    client.close();
  }
  const types = `${checked} open runs of ${hello.workflowTypes.length} workflow types`;
  console.log(`checked ${types} in namespace ${printable(namespace)}: ${diverged} diverge, ${stuck} came to no end`);
  return diverged + stuck === 0;
}

/**
 * Returns what is wrong with a run. Its pages are no snapshot, so a divergence counts only if a second read shows the run
 * unchanged.
 */
async function checkOne(worker: Worker, client: Client, runId: string): Promise<KagziError | 'fits' | 'ended'> {
  let last = '';
  let found: KagziError | undefined;
  for (let look = 0; look < LOOKS; look++) {
    let run: RunDetails;
    let steps: v1.Step[];
    try {
      run = await client.get(runId);
      if (ENDED.has(run.status)) return 'ended';
      steps = await client.run(runId).steps();
    } catch (e) {
      if (e instanceof ServerError && e.code === 'NOT_FOUND') return 'ended';
      throw e;
    }
    const record = new RunRecord(run.wire, steps);
    const read = record.steps.map((s) => Buffer.from(v1.Step.encode(s).finish()).toString('base64')).join();
    if (found && last === read) break;
    last = read;
    try {
      found = await replay(worker, record, LIMIT);
    } catch (e) {
      if (!(e instanceof KagziError)) throw e;
      return e;
    }
    if (!found) return 'fits';
  }
  return found ?? 'fits';
}

/** Throws an error if the namespace does not exist: a misspelt one has no open runs either, and would pass. */
async function namespaceThere(client: Client): Promise<void> {
  const name = client.namespace;
  try {
    await client.calls.getNamespace({ namespace: name });
  } catch (e) {
    if (!(e instanceof ServerError) || e.code !== 'NOT_FOUND') return; // without the permission to ask, it counts as there
    const advice = `if that is its name and nothing has run there yet, make it with: kagzi namespace create ${name}`;
    throw new ConfigError(`check: there is no namespace ${name}, so nothing was checked; ${advice}`);
  }
}
