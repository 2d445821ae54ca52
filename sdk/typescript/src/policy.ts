// Options that steps, runs, children and schedules share.
import * as v1 from './v1/index.js';
import {
  type Duration,
  MAX_DELAY,
  MAX_ERROR_TYPE,
  millis,
  show,
  stamp,
  wholeMs,
  wireDuration,
  wireTime,
} from './convert.js';
import { ConfigError } from './errors.js';
import { checkOptions, names } from './known.js';

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

/** Returns a policy for the wire. Throws a ConfigError. */
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
const START = names<StartOptions>()(...CHILD, 'reuse requestId');

/** Throws a ConfigError for an option of a start that does not exist. */
export function checkStart(workflowType: string, o: StartOptions): void {
  checkOptions(() => `the start of ${workflowType}`, o, START);
}

const REUSE = {
  when_ended: v1.ExternalIdReuse.UNSPECIFIED,
  never: v1.ExternalIdReuse.NEVER,
  reject: v1.ExternalIdReuse.REJECT,
};
const SCOPES = { slot: v1.ConcurrencyScope.UNSPECIFIED, open: v1.ConcurrencyScope.OPEN };

/**
 * Returns retry_policy and run_retry_policy of a request. A server applies a policy of steps that comes alone to the run,
 * too, so without runRetry a stepRetry is sent with one attempt of the run.
 */
export function policies(o: ChildOptions): {
  retryPolicy?: v1.RetryPolicy | undefined;
  runRetryPolicy?: v1.RetryPolicy | undefined;
} {
  const retryPolicy = o.stepRetry && wireRetry(o.stepRetry);
  if (o.runRetry) return { retryPolicy, runRetryPolicy: wireRetry(o.runRetry) };
  return { retryPolicy, runRetryPolicy: retryPolicy && v1.RetryPolicy.create({ maximumAttempts: 1 }) };
}

/** Returns the timeouts among options for the wire. */
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
  const reuse = REUSE[o.reuse ?? 'when_ended'] as v1.ExternalIdReuse | undefined;
  const scope = SCOPES[o.concurrencyScope ?? 'slot'] as v1.ConcurrencyScope | undefined;
  if (reuse === undefined) throw new ConfigError(`option reuse is ${show(o.reuse)}, want when_ended, never or reject`);
  if (scope === undefined)
    throw new ConfigError(`option concurrencyScope is ${show(o.concurrencyScope)}, want slot or open`);
  for (const [name, value] of Object.entries({ priority: o.priority, concurrencyLimit: o.concurrencyLimit })) {
    if (value !== undefined && (!Number.isInteger(value) || Math.abs(value) >= 2 ** 31)) {
      throw new ConfigError(`option ${name} is ${show(value)}, want a whole number`);
    }
  }
  const r = v1.StartWorkflowRequest.create({
    namespace,
    workflowType,
    input,
    taskQueue: o.queue || queue || 'default',
    externalId: o.id ?? '',
    externalIdReuse: reuse,
    version: o.version ?? '',
    requestId: o.requestId ?? '',
    onFailureWorkflow: o.onFailure ?? '',
    onFailureTaskQueue: o.onFailureQueue ?? '',
    tags: o.tags ?? {},
    requirements: o.requirements ?? {},
    concurrencyKey: o.concurrencyKey ?? '',
    concurrencyLimit: o.concurrencyLimit ?? 0,
    concurrencyScope: scope,
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
