// Options of runs, steps and workers, their form on the wire, and what a worker tells the server of the program.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Codec } from './codec.js';
import {
  type Duration,
  names,
  MAX_DELAY,
  MAX_ERROR_TYPE,
  checkOptions,
  choice,
  millis,
  show,
  stamp,
  wholeMs,
  wireDuration,
  wireTime,
} from './convert.js';
import type { Log } from './log.js';
import type { ConnectOptions } from './profile.js';
import type { Attempt } from './step.js';
import type { Workflow } from './workflow.js';
import * as v1 from './v1/index.js';
import { ConfigError } from './errors.js';

/**
 * A retry policy. Only failures of the code count as attempts; sleeps, drains and lost workers do not. The delay after
 * the n-th failure is min(initial * coefficient^(n-1), max), plus a random part of up to jitter of it.
 */
export interface Retry {
  /** Including the first; 1 means no retry, -1 no limit (3). At most 10,000. */
  attempts?: number;
  /** Delay after the first failure (1 s). */
  initial?: Duration;
  /** Longest delay (60 s). */
  max?: Duration;
  /** At least 1 (2). */
  coefficient?: number;
  /** 0 to 1; a negative value means none (0.1). */
  jitter?: number;
  /** Errors that are final: an entry matches an error's type or the start of its message. At most 64, of 255 bytes. */
  nonRetryable?: readonly string[];
}

const RETRY = names<Retry>()('attempts initial max coefficient jitter nonRetryable');

export function wireRetry(r: Retry): v1.RetryPolicy {
  checkOptions(() => 'a retry policy', r, RETRY);
  const { attempts = 0, coefficient = 0, jitter = 0, nonRetryable = [] } = r;
  if (!Number.isInteger(attempts) || attempts < -1 || attempts > 10_000) {
    throw new ConfigError(`retry.attempts is ${show(attempts)}, want 1 to 10000, or -1 for no limit`);
  }
  if (coefficient !== 0 && !(coefficient >= 1 && coefficient <= 1e9)) {
    throw new ConfigError(`retry.coefficient is ${show(coefficient)}, want 1 to 1e9`);
  }
  if (!(jitter <= 1)) throw new ConfigError(`retry.jitter is ${show(jitter)}, want 0 to 1, or less than 0 for none`);
  if (!(nonRetryable instanceof Array) || nonRetryable.length > 64) {
    throw new ConfigError('retry.nonRetryable: want a list of at most 64 entries');
  }
  nonRetryable.forEach((entry: unknown, n) => {
    if (typeof entry !== 'string' || entry.includes('\0') || Buffer.byteLength(entry) > MAX_ERROR_TYPE) {
      throw new ConfigError(`retry.nonRetryable[${n}] is ${show(entry)}, want text of at most 255 bytes`);
    }
  });
  return v1.RetryPolicy.create({
    maximumAttempts: attempts,
    initialIntervalMs: wholeMs(r.initial, 'retry.initial'),
    backoffCoefficient: coefficient,
    maximumIntervalMs: wholeMs(r.max, 'retry.max'),
    nonRetryableErrors: [...nonRetryable],
    jitter: Math.max(jitter, -1),
  });
}

/** Options that a start and a child have in common. */
export interface ChildOptions {
  /** External id: the application's own id, unique among open runs of the namespace. */
  id?: string;
  /** Task queue (that of the workflow, of the parent, or `default`). */
  queue?: string;
  /** Of the code, shown and returned by info. */
  version?: string;
  /** Policy of steps without their own (3 attempts). */
  stepRetry?: Retry;
  /** Policy of the run itself: when its function has failed, it is called again (not retried). */
  runRetry?: Retry;
  /** Of one attempt of a step (600 s). */
  stepTimeout?: Duration;
  /** Lease between heartbeats, if longer than the server's. */
  heartbeatTimeout?: Duration;
  /** Of the whole run, from its start time. */
  executionTimeout?: Duration;
  /** The earlier of this and executionTimeout applies. */
  deadline?: Date;
  /** Earliest start. */
  startAt?: Date;
  /** The same by the server's clock, instead of startAt. */
  delay?: Duration;
  /** -100 to 100, higher first (0). */
  priority?: number;
  /** Searchable. */
  tags?: Readonly<Record<string, string>>;
  /** Labels or capabilities that a worker must have. */
  requirements?: Readonly<Record<string, string>>;
  /** At most concurrencyLimit runs of this type and key at a time (1). */
  concurrencyKey?: string;
  concurrencyLimit?: number;
  /** When a run counts for the key: while a worker holds it, or from its first claim to its end (`slot`). */
  concurrencyScope?: 'slot' | 'open';
  /** Workflow type that is started when the run fails or times out. */
  onFailure?: string;
  onFailureQueue?: string;
}

/** Options of a start by a client. */
export interface StartOptions extends ChildOptions {
  /**
   * What to do if a run has the id: `when_ended` returns an open run, `never` any retained run, `reject` throws a CONFLICT
   * if a run is open (`when_ended`).
   */
  reuse?: 'when_ended' | 'never' | 'reject';
  /** Identifies the call: repeating it always returns the same run (a new UUIDv7). At most 64 bytes. */
  requestId?: string;
}

/** Names of the options that a start and a child have in common. */
export const CHILD = [
  'id queue version stepRetry runRetry stepTimeout heartbeatTimeout executionTimeout deadline startAt delay priority',
  'tags requirements concurrencyKey concurrencyLimit concurrencyScope onFailure onFailureQueue',
] as const;
/** Names of the options of a start. */
export const START = names<StartOptions>()(...CHILD, 'reuse requestId');

const { UNSPECIFIED, NEVER, REJECT } = v1.ExternalIdReuse;
const REUSE = { when_ended: UNSPECIFIED, never: NEVER, reject: REJECT };
const SCOPES = { slot: v1.ConcurrencyScope.UNSPECIFIED, open: v1.ConcurrencyScope.OPEN };

/**
 * Returns retry_policy and run_retry_policy of a request. A server applies a policy of steps that comes alone to the run,
 * too, so without runRetry a stepRetry is sent with one attempt of the run.
 */
export function policies(o: ChildOptions): Pick<Partial<v1.StartWorkflowRequest>, 'retryPolicy' | 'runRetryPolicy'> {
  const retryPolicy = o.stepRetry && wireRetry(o.stepRetry);
  if (o.runRetry) return { retryPolicy, runRetryPolicy: wireRetry(o.runRetry) };
  return { retryPolicy, runRetryPolicy: retryPolicy && v1.RetryPolicy.create({ maximumAttempts: 1 }) };
}

export function timeouts(o: ChildOptions): v1.TimeoutConfig | undefined {
  const made = v1.TimeoutConfig.create({
    startToCloseTimeoutMs: wholeMs(o.stepTimeout, 'stepTimeout'),
    heartbeatTimeoutMs: wholeMs(o.heartbeatTimeout, 'heartbeatTimeout'),
    executionTimeoutMs: wholeMs(o.executionTimeout, 'executionTimeout'),
  });
  return made.startToCloseTimeoutMs || made.heartbeatTimeoutMs || made.executionTimeoutMs ? made : undefined;
}

/** Returns the request that starts a run. Throws a ConfigError for an option that is invalid. */
export function startRequest(
  namespace: string,
  workflowType: string,
  input: v1.Payload,
  queue: string,
  now: number,
  o: StartOptions,
): v1.StartWorkflowRequest {
  const externalIdReuse = choice('option reuse', o.reuse, REUSE);
  const concurrencyScope = choice('option concurrencyScope', o.concurrencyScope, SCOPES);
  for (const [name, value] of Object.entries({ priority: o.priority, concurrencyLimit: o.concurrencyLimit })) {
    if (value !== undefined && (!Number.isInteger(value) || Math.abs(value) >= 2 ** 31)) {
      throw new ConfigError(`option ${name} is ${show(value)}, want a whole number`);
    }
  }
  const { version, requestId, tags, requirements, concurrencyKey, concurrencyLimit } = o;
  const r = v1.StartWorkflowRequest.create({
    ...{ namespace, workflowType, input, version, requestId, tags, requirements },
    ...{ externalIdReuse, concurrencyKey, concurrencyLimit, concurrencyScope },
    taskQueue: o.queue || queue || 'default',
    externalId: o.id,
    onFailureWorkflow: o.onFailure,
    onFailureTaskQueue: o.onFailureQueue,
    deadlineAt: stamp(o.deadline, 'option deadline'),
    startAt: stamp(o.startAt, 'option startAt'),
    timeouts: timeouts(o),
    priority: o.priority || undefined,
    ...policies(o),
  });
  if (o.delay !== undefined) {
    const delay = millis(o.delay, 'option delay');
    if (!(delay >= 0 && delay <= MAX_DELAY))
      throw new ConfigError(`option delay is ${show(o.delay)}, want 0 to 10 years`);
    if (o.startAt) throw new ConfigError('options delay and startAt are both set, want one of them');
    if (delay > 0) {
      r.startAt = wireTime(now + delay);
      r.startIn = wireDuration(delay);
    }
  }
  return r;
}

/** Is called around workflow functions and code of steps. */
export interface Interceptor {
  /** Is called around a workflow function, in every replay; it must be deterministic, and return what next returns. */
  run?<T>(about: RunAbout, next: () => Promise<T>): Promise<T>;
  /** Is called around the code of one attempt of a step. */
  step?<T>(about: Attempt, next: () => Promise<T>): Promise<T>;
}

/** What an interceptor knows of a run. */
export interface RunAbout {
  runId: string;
  workflowType: string;
  attempt: number;
  /** Whether the run has a history, so that the code is replayed. */
  replaying: boolean;
  /** Whether the run is only checked, or a capsule is replayed: nothing of it counts. */
  check: boolean;
}

/** Options of a worker. */
export interface WorkerOptions extends ConnectOptions {
  /** Main queue (that of the workflows, else `default`). */
  queue?: string;
  /** Further queues, in order of preference. */
  queues?: readonly string[];
  /** Most runs that it holds at once (100). */
  maxConcurrent?: number;
  /** Most RUNNING runs of a workflow type in the queue, over all workers. */
  typeLimits?: Readonly<Record<string, number>>;
  /** Most RUNNING runs in the queue, over all workers. */
  queueLimit?: number;
  /** Letters, digits, `-` and `_`, at most 64 (the server chooses one). */
  workerId?: string;
  /** Shown to operators (that of the operating system). */
  hostname?: string;
  /** Of the application. */
  version?: string;
  /** Shown to operators, and matched by requirements of runs. */
  labels?: Readonly<Record<string, string>>;
  /** Matched by requirements of runs, like `tool:jq` with value `1.7`. */
  capabilities?: Readonly<Record<string, string>>;
  /** Names the workflow code: up to 128 printable ASCII characters (a hash of the program's main file). */
  buildId?: string;
  /** What to do when the code does not match a run's history (`pause`). */
  onDivergence?: 'pause' | 'fail' | 'warn';
  /** Ids of `run.patched` calls that are no longer in the code. */
  removedPatches?: readonly string[];
  /** How long a stopping worker waits for its runs (300 s); 0 means not at all. */
  drainTimeout?: Duration;
  /** Drain on SIGTERM and SIGINT; a second one releases the runs at once (true). */
  handleSignals?: boolean;
  /** Logger of the worker and of workflow code (lines on stderr, from `info` on). */
  log?: Log;
  /** Transforms payloads. */
  codec?: Codec;
  /** Most parked runs whose code it keeps in memory, each for 10 minutes; 0 for none, at most 100,000 (1,000). */
  cache?: number;
  /** Most bytes of their payloads, and 16 KiB for each run (256 MiB). */
  cacheBytes?: number;
  /** Are called around workflow functions and code of steps; the first is the outermost. */
  interceptors?: readonly Interceptor[];
  /** For tests: give the run back at every result, so that each await is replayed. */
  alwaysSuspend?: boolean;
}

export const WORKER_OPTIONS = names<WorkerOptions>()(
  'profile address namespace apiKey tls queue queues maxConcurrent typeLimits queueLimit workerId hostname version',
  'labels capabilities buildId onDivergence removedPatches drainTimeout handleSignals log codec cache cacheBytes',
  'interceptors alwaysSuspend',
);

const ARCHITECTURES: Record<string, string> = { x64: 'amd64' };
const SYSTEMS: Record<string, string> = { win32: 'windows' };
/** System and architecture, as Go names them. */
export const PLATFORM = `${SYSTEMS[process.platform] ?? process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;

/** Of this package. */
export const VERSION = '0.1.0';

/** Names the language of a worker to people and to requirements of runs (PROTOCOL.md, §1.8). */
const SDK_CAPABILITY = 'sdk:typescript';
const MAX_CAPABILITIES = 1024;

/** Returns capabilities with the SDK among them, unless there is no room for one more. */
export function withSDK(capabilities: Readonly<Record<string, string>> = {}): Record<string, string> {
  if (Object.keys(capabilities).length >= MAX_CAPABILITIES) return capabilities;
  return { ...capabilities, [SDK_CAPABILITY]: VERSION };
}

/** Returns a hash of the version of Node, the program's main file and the text of the workflow functions. */
export function ownBuild(workflows: readonly Workflow<never, unknown>[]): string {
  const hash = createHash('sha256').update(process.version);
  const [, main] = process.argv;
  try {
    if (main) hash.update(readFileSync(main));
  } catch {
    // it is no file: the functions have to do
  }
  for (const { name, fn } of workflows) hash.update(name).update(fn.toString());
  return hash.digest('hex').slice(0, 32);
}
