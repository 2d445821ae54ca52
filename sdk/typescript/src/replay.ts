// Replays: the code of a run against its record, without a server. `kagzi check` and capsules use them.
import { isDeepStrictEqual } from 'node:util';
import * as v1 from './v1/index.js';
import { Activation } from './activation.js';
import { type Codec, decode } from './codec.js';
import { type Duration, millis, printable, unix, wireTime } from './convert.js';
import { callNames, divergence, owed } from './ending.js';
import { KagziError, ConfigError, ServerError } from './errors.js';
import * as json from './json.js';
import { logOf } from './log.js';
import type { Op } from './outbox.js';
import { scope } from './scope.js';
import type { Session } from './session.js';
import { Worker } from './worker.js';
import { Workflow } from './workflow.js';
import { Client } from './client.js';
import type { RunDetails } from './handle.js';

const PREVIEW = 200;
const LEASE = 30_000;
const ENDS = new Set(['completeWorkflow', 'failWorkflow', 'releaseTask']);

/** The first difference between a run's code and its record. */
export class Divergence extends KagziError {
  readonly runId: string;
  readonly workflowType: string;

  /** @internal */
  constructor(
    run: v1.Workflow,
    /** The recorded step, or the code's extra one; empty at the run's input and end. */
    readonly step: string,
    /** What is recorded. */
    readonly expected: string,
    /** What the code did. */
    readonly got: string,
  ) {
    const at = step ? ` at step ${step}` : '';
    const text = `run ${run.runId} of type ${run.workflowType} diverges${at}: expected ${expected}, got ${got}`;
    super(printable(text));
    this.runId = run.runId;
    this.workflowType = run.workflowType;
  }
}

/** A run and the latest attempt of each of its steps. */
export class RunRecord {
  readonly steps: readonly v1.Step[];

  constructor(
    readonly run: v1.Workflow,
    attempts: Iterable<v1.Step>,
  ) {
    const latest = new Map<string, v1.Step>();
    for (const s of attempts) {
      const old = latest.get(s.name);
      const newer = !old || (s.isLatest === old.isLatest ? s.attemptNumber > old.attemptNumber : s.isLatest);
      if (newer) latest.set(s.name, s);
    }
    const steps = [...latest.values()].map(stillOpen);
    this.steps = steps.sort((a, b) => a.sequence - b.sequence || (a.name < b.name ? -1 : 1));
  }

  /** Returns the task that a worker would get for the run, at a time when all that is recorded has passed. */
  task(): v1.Task {
    const times = this.steps.flatMap((s) => [s.createdAt, s.startedAt, s.finishedAt]);
    const latest = Math.max(Date.now(), ...times.map((t) => (t ? unix(t) : 0)));
    const length = Math.max(LEASE, this.run.timeouts?.heartbeatTimeoutMs ?? 0);
    return v1.Task.create({
      ...this.run, // what runs and tasks have in common
      history: [...this.steps],
      attempt: this.run.attempts,
      cancelRequested: this.run.cancelRequestedAt !== undefined,
      leaseExpiresAt: wireTime(latest + length),
    });
  }
}

/** Returns a step as the code knows it: one that the end of the run interrupted has no result yet. */
function stillOpen(s: v1.Step): v1.Step {
  const interrupted = s.error?.code === v1.ErrorCode.CANCELLED && s.error.type === 'run_ended';
  const open = s.status === v1.StepStatus.FAILED && (interrupted || (s.isLatest && s.retryAt !== undefined));
  return open ? v1.Step.create({ ...s, status: v1.StepStatus.RUNNING, error: undefined }) : s;
}

/** Takes the place of the connection while a run is replayed: its first end decides. No code of a step begins. */
function recorded(ended: (op: Op) => void): Partial<Session> {
  // All but the ends of a run are of no effect, and nothing waits for their answers.
  const send = (op: Op): void => {
    if (ENDS.has(op.kind)) ended(op);
  };
  return Object.assign(
    { keepsOrder: true, resumesRuns: false, lease: LEASE, workerId: '', trusted: () => false, forget: nothing },
    { thread: { enter: nothing, leave: nothing }, stats: { count: nothing } },
    { outbox: { send, withdraw: nothing, enqueue: () => false } },
  ) as unknown as Session;
}

/** Fails the run whose code left a rejection unhandled. */
function onRejection(reason: unknown): void {
  const at = scope.getStore();
  if (!(at instanceof Activation)) throw reason;
  at.post(() => at.unhandled(reason));
}

/**
 * Runs code of a worker, which is used for nothing else, against a record. Returns the first difference; undefined if they
 * agree. It rejects with a KagziError when the code comes to no end within the limit.
 */
export async function replay(worker: Worker, record: RunRecord, limit?: Duration): Promise<Divergence | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const verdict = new Promise<Op>((resolve, reject) => {
    Object.assign(worker, { session: recorded(resolve) });
    if (limit === undefined) return;
    const text = `run ${record.run.runId}: the code came to no end within ${millis(limit, 'limit') / 1000} s`;
    timer = setTimeout(() => reject(new KagziError(text)), millis(limit, 'limit'));
  });
  Object.assign(worker.options, { onDivergence: 'pause', alwaysSuspend: false });
  const act = new Activation(worker, record.task());
  act.replaying = true;
  process.on('unhandledRejection', onRejection);
  try {
    act.begin(record.steps);
    return compare(act, record, await verdict);
  } finally {
    clearTimeout(timer);
    act.over('replayed');
    process.off('unhandledRejection', onRejection);
  }
}

function compare(act: Activation, record: RunRecord, end: Op): Divergence | undefined {
  const { run } = record;
  const differs = (step: string, expected: string, got: string): Divergence => new Divergence(run, step, expected, got);
  const failure = end.kind === 'failWorkflow' ? (end.body as v1.FailWorkflowRequest).error : undefined;
  const done = end.kind === 'completeWorkflow' ? (end.body as v1.CompleteWorkflowRequest) : undefined;
  let said = failure ? `the run failed: ${failure.message.slice(0, PREVIEW)}` : '';
  if (failure?.type === 'unreadable') return differs(act.unreadable, 'a value that the code can read', failure.message);
  if (act.rejected && !act.misfit) return differs('', 'a run that the SDK accepts', failure?.message ?? '');
  if (done) said = done.continueAs ? 'the run continued as new' : `the run completed with ${preview(act, done.output)}`;
  const made = act.held.length > 0 || act.misfit ? divergence(act).made : [];
  const waits = [...act.open].filter((c) => c.record !== undefined);
  const beyond = waits.slice(0, 1).map((c) => v1.Call.create({ name: c.name, kind: c.kind }));
  const got =
    said || (beyond.length > 0 && made.length === 0 ? `nothing beyond ${callNames(beyond)}` : callNames(made));
  const missed = owed(act);
  const { misfit } = act;
  const first = misfit ? missed.find((c) => c.name === misfit.name) : missed[0];
  if (first) return differs(first.name, callNames([first]), got);
  return compareEnds(act, record, { failure, done, said });
}

interface End {
  failure: v1.FailWorkflowRequest['error'];
  done: v1.CompleteWorkflowRequest | undefined;
  said: string;
}

function compareEnds(act: Activation, { run }: RunRecord, { failure, done, said }: End): Divergence | undefined {
  const failed = run.status === v1.WorkflowStatus.FAILED && run.error?.code === v1.ErrorCode.UNSPECIFIED;
  const byCode = failed && !['refused', 'nondeterministic'].includes(run.error?.type ?? '');
  if (run.status !== v1.WorkflowStatus.COMPLETED && !byCode) return undefined;
  let expected: string;
  let same: boolean;
  if (byCode) {
    expected = `the run to have failed: ${run.error?.message.slice(0, PREVIEW) ?? ''}`;
    same = failure !== undefined && failure.message === run.error?.message && failure.type === run.error.type;
  } else if (run.continuedAsRunId) {
    expected = 'the run to have continued as new';
    same = done?.continueAs !== undefined;
  } else {
    expected = `the run to have completed with ${preview(act, run.output)}`;
    same = done !== undefined && !done.continueAs && isDeepStrictEqual(plain(act, done.output), plain(act, run.output));
  }
  if (same) return undefined;
  if (said) return new Divergence(run, '', expected, said);
  const [{ name } = { name: '' }] = act.open;
  return new Divergence(run, name, expected, `a wait for ${name || 'nothing'}`);
}

function plain(act: Activation, p: v1.Payload | undefined): unknown {
  return decode(act.codec, p, { kind: 'output', runId: act.task.runId }, `output of run ${act.task.runId}`);
}

function preview(act: Activation, p: v1.Payload | undefined): string {
  return json.encode(plain(act, p)).slice(0, PREVIEW);
}

/** Options of a replay. */
export interface ReplayOptions {
  /** Another run of the capsule, such as a child (the exported one). */
  runId?: string;
  /** The same as the workers'. */
  codec?: Codec;
  /** Ids of `run.patched` calls that are no longer in the code. */
  removedPatches?: readonly string[];
}

/**
 * Runs a workflow against the recorded results of an exported run, without a server: for tests and debuggers. The file is
 * written by `run.export` or `kagzi workflow export`. No code of a step runs, and there is no time limit. At a call without
 * a recorded result the code is suspended.
 *
 * It rejects with a Divergence when code and record differ: a step that the code does not reach, one of another kind, a
 * value that cannot be decoded, or an end that differs from the run's. It rejects with a ConfigError when the file is no
 * capsule, has no such run, or was exported without payloads.
 */
export async function replayCapsule<In, Out>(
  file: string | URL,
  workflow: Workflow<In, Out>,
  options: ReplayOptions = {},
): Promise<void> {
  const { readCapsule } = await import('./capsule.js'); // which loads the descriptors of all messages
  const { run, steps } = readCapsule(file, options.runId);
  const code = new Workflow<In, Out>(run.workflowType, workflow.options, workflow.fn);
  const { codec, removedPatches } = options;
  const own = { profile: 'off', handleSignals: false, log: logOf(nothing) };
  const worker = new Worker([code], { ...own, codec, removedPatches });
  const found = await replay(worker, new RunRecord(run, steps));
  if (found) throw found;
}

function nothing(): void {
  // a replay says what it finds
}

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
    const { workflowTypes } = hello;
    const queues = [hello.taskQueue, ...hello.taskQueues];
    const open = client.list({ status: ['PENDING', 'RUNNING', 'SLEEPING'], workflowTypes, queues, pageSize: PAGE });
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
