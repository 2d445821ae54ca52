// Replays: the code of a run against its record, without a server. `kagzi check` and capsules use them.
import { isDeepStrictEqual } from 'node:util';
import * as v1 from './v1/index.js';
import { Activation } from './activation.js';
import { type Codec, decode } from './codec.js';
import { type Duration, millis, printable, unix, wireTime } from './convert.js';
import { callNames, divergence, owed } from './ending.js';
import { KagziError } from './errors.js';
import * as json from './json.js';
import type { Op } from './op.js';
import type { Outbox } from './outbox.js';
import { scope } from './scope.js';
import { Worker } from './worker.js';
import { Workflow } from './workflow.js';

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
    const { run } = this;
    const times = this.steps.flatMap((s) => [s.createdAt, s.startedAt, s.finishedAt]);
    const latest = Math.max(Date.now(), ...times.map((t) => (t ? unix(t) : 0)));
    const { namespace, runId, workflowType, taskQueue, version, input, deadlineAt, externalId, parentRunId } = run;
    const { scheduleId, tags, scheduledAt, cancelGraceUntil, failedRunId, owedFrom, timeouts } = run;
    const length = Math.max(LEASE, timeouts?.heartbeatTimeoutMs ?? 0);
    return v1.Task.create({
      ...{ namespace, runId, workflowType, taskQueue, version, input, deadlineAt, externalId, parentRunId },
      ...{ scheduleId, tags, scheduledAt, cancelGraceUntil, failedRunId, owedFrom, timeouts },
      history: [...this.steps],
      attempt: run.attempts,
      cancelRequested: run.cancelRequestedAt !== undefined,
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

/** Takes the place of the connection while a run is replayed: its first end decides. */
class Recorded {
  readonly keepsOrder = true;
  readonly resumesRuns = false;
  readonly lease = LEASE;
  readonly workerId = '';
  readonly thread = { enter: (): void => undefined, leave: (): void => undefined };
  readonly stats = { count: (): void => undefined };

  /** All but the ends of a run are of no effect, and nothing waits for their answers. */
  readonly outbox: Pick<Outbox, 'send' | 'withdraw' | 'enqueue'> = {
    send: (op) => {
      if (ENDS.has(op.kind)) this.ended(op);
    },
    withdraw: () => undefined,
    enqueue: () => false,
  };

  constructor(private readonly ended: (op: Op) => void) {}

  forget(): void {
    // no run is held
  }

  /** No code of a step begins. */
  trusted(): boolean {
    return false;
  }
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
    Object.assign(worker, { session: new Recorded(resolve) });
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
  const [waits] = act.open;
  return new Divergence(
    run,
    said ? '' : (waits?.name ?? ''),
    expected,
    said || `a wait for ${waits?.name ?? 'nothing'}`,
  );
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
  const silent = { debug: noLine, info: noLine, warn: noLine, error: noLine };
  const worker = new Worker([code], {
    profile: 'off',
    handleSignals: false,
    log: silent,
    ...(codec && { codec }),
    ...(removedPatches && { removedPatches }),
  });
  const found = await replay(worker, new RunRecord(run, steps));
  if (found) throw found;
}

function noLine(): void {
  // a replay says what it finds
}
