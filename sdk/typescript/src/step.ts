// Steps: a function runs, and its result is recorded.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import type { Branch } from './branch.js';
import { suspend } from './parking.js';
import { Call, How, State } from './call.js';
import { type Schema, pack, told, validated } from './codec.js';
import { MAX_DELAY, unix, wireTime } from './convert.js';
import { Coded, cancelledError, detailOf, stepError } from './errors.js';
import { readRecord } from './history.js';
import * as json from './json.js';
import { hand, report } from './order.js';
import { scope } from './scope.js';
import { logFailedStep } from './log.js';

/** Milliseconds that the server gives a step more than the worker does. */
const MARGIN = 2000;
const HANGS_AFTER = 10_000;

/** What code of a step knows about itself. */
export interface StepContext {
  /** Aborted when nobody waits for the step any more: it timed out, or its run is being cancelled or was lost. */
  readonly signal: AbortSignal;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** For external systems: the run's id, a slash, the step's recorded name. It is the same for all attempts. */
  readonly idempotencyKey: string;
  readonly runId: string;
  readonly workflowType: string;
  /** The name under which the step is recorded. */
  readonly step: string;
  /** Sets the progress text of the run, which lists show; it is cut to 255 bytes. */
  note(text: string): void;
}

/** The code of a step. */
export type StepFunction<T> = (step: StepContext) => T | Promise<T>;

/** One attempt of a step's code, as AsyncLocalStorage names it. */
export class Attempt implements StepContext {
  #stop: AbortController | undefined;
  /** Monotonic time at which it began. */
  readonly since = performance.now();
  done = false;
  /** Gives the id of the attempt on the server, once it is announced. */
  announced: Promise<string> | undefined;

  constructor(
    readonly call: StepCall<unknown>,
    readonly attempt: number,
  ) {}

  get signal(): AbortSignal {
    return (this.#stop ??= new AbortController()).signal;
  }

  get idempotencyKey(): string {
    return `${this.call.act.task.runId}/${this.call.name}`;
  }

  get runId(): string {
    return this.call.act.task.runId;
  }

  get workflowType(): string {
    return this.call.act.task.workflowType;
  }

  get step(): string {
    return this.call.name;
  }

  note(text: string): void {
    this.call.act.notes.set(text);
  }

  /** Tells the code that nobody waits for it any more, and logs it if it does not end. */
  end(why: Error): void {
    if (this.done || this.signal.aborted) return;
    this.#stop?.abort(why);
    const { worker } = this.call.act;
    setTimeout(() => {
      if (this.done) return;
      const text = `code of step ${this.step} (run ${this.runId}, attempt ${this.attempt}) still runs ${HANGS_AFTER / 1000} s after it was ended; it should watch its signal`;
      worker.log.warn(text);
    }, HANGS_AFTER).unref();
  }
}

export class StepCall<T> extends Call<T> {
  readonly kind = v1.StepKind.FUNCTION;
  attempt = 1;
  /** Operations up to this index must be durable before the body starts. */
  wantsAfter = 0;
  readonly timeout: number;
  current: Attempt | undefined;
  #last: v1.ErrorDetail | undefined;
  #got!: T;
  #started = 0;

  constructor(
    act: Activation,
    branch: Branch,
    name: string,
    private readonly fn: StepFunction<T>,
    private readonly schema: Schema<T> | undefined,
    private readonly retry: v1.RetryPolicy | undefined,
    timeout: number,
    clean: boolean,
  ) {
    super(act, branch, name, '', clean);
    this.timeout = timeout || act.stepTimeout;
  }

  start(): void {
    if (this.record) {
      this.attempt = this.record.attemptNumber + 1;
      if (this.record.status === v1.StepStatus.PENDING) {
        this.#last = this.record.error;
        return this.#retryAt(this.record.retryAt ? unix(this.record.retryAt) : 0);
      }
    }
    this.act.wantBody(this);
  }

  #retryAt(due: number): void {
    const left = due - this.act.now();
    if (left <= 0) return this.act.wantBody(this);
    this.due = due;
    this.park(left);
  }

  woken(): void {
    this.#retryAt(this.due);
  }

  body(): void {
    const { act } = this;
    this.running = true;
    act.bodiesRunning++;
    const attempt = new Attempt(this, this.attempt);
    this.current = attempt;
    this.#started = act.now();
    const { worker } = act;
    worker.turns.flushLate();
    const fn = (worker.replaced.get(this.written) as StepFunction<T> | undefined) ?? this.fn;
    let got: T | PromiseLike<T>;
    try {
      got = scope.run(attempt, () => worker.aroundStep(attempt, fn));
    } catch (error) {
      return this.finish(attempt, undefined, { error });
    }
    if (!isPromise(got)) return this.finish(attempt, got);
    worker.running.add(attempt);
    if (this.timeout < ANNOUNCE_AFTER) this.#tickAfter(this.timeout, attempt);
    Promise.resolve(got).then(
      (value) => this.finish(attempt, value),
      (error: unknown) => this.finish(attempt, undefined, { error }),
    );
  }

  /** Takes the end of an attempt's code; the first one counts. */
  finish(attempt: Attempt, value: T | undefined, thrown?: { error: unknown }): void {
    if (attempt.done) return;
    attempt.done = true;
    this.act.worker.running.delete(attempt);
    this.act.post(() => this.#done(attempt, value, thrown));
  }

  /** Takes note that the code of an attempt runs for long. */
  long(attempt: Attempt): void {
    this.act.post(() => this.#tick(attempt));
  }

  #tickAfter(ms: number, attempt: Attempt): void {
    clearTimeout(this.timer);
    this.timer = this.act.after(ms, () => this.#tick(attempt));
  }

  /** Announces a step that takes long, and ends one that takes too long. */
  #tick(attempt: Attempt): void {
    if (attempt !== this.current || attempt.done || this.act.closing) return;
    const passed = performance.now() - attempt.since;
    if (passed < this.timeout - 0.5) {
      if (passed >= ANNOUNCE_AFTER - 0.5) void this.announce(attempt);
      this.#tickAfter(Math.max(this.timeout - passed, 1), attempt);
      return;
    }
    const error = new Coded(`step ${this.name} timed out after ${this.timeout / 1000} s`, '', 'TIMEOUT', false);
    attempt.end(error);
    this.#finished();
    this.#fail(detailOf(error));
    this.act.pauseIfIdle();
    this.act.schedule();
  }

  /** Tells the server once that the code runs; returns the id of the attempt. */
  announce(attempt: Attempt): Promise<string> {
    return (attempt.announced ??= new Promise((resolve) => {
      const begin = {
        ...this.place,
        kind: this.kind,
        retryPolicy: this.retry,
        startToCloseTimeoutMs: Math.min(this.timeout, MAX_DELAY - MARGIN) + MARGIN,
        startedAt: wireTime(this.#started),
      };
      this.act.send('beginStep', begin, (r) => resolve(r.begunStep?.stepId ?? ''));
    }));
  }

  #finished(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.current = undefined;
    this.act.bodiesRunning--;
  }

  #done(attempt: Attempt, value: T | undefined, thrown: { error: unknown } | undefined): void {
    const { act } = this;
    if (attempt !== this.current) return;
    this.#finished();
    if (act.ended || act.closing) return;
    let failure = thrown;
    if (!failure) {
      try {
        this.#complete(value);
      } catch (error) {
        failure = { error };
      }
    }
    if (failure) {
      const detail = detailOf(failure.error);
      if (act.cancelled && !this.clean && !detail.nonRetryable) {
        Object.assign(detail, { code: v1.ErrorCode.CANCELLED, nonRetryable: true, retryAfterMs: 0 });
      }
      this.#fail(detail);
    }
    act.pauseIfIdle();
    act.schedule();
  }

  /** Records a result. The code gets it as a replay will read it. */
  #complete(value: T | undefined): void {
    const { act } = this;
    const output = told('result', () => {
      const text = json.encode(value);
      this.#got = validated(this.schema, json.readBack(value, text));
      return pack(act.codec, text, act.payloadInfo('step', this.name));
    });
    act.size += output.data.length;
    act.warnLarge('step result', output, this.name);
    const { namespace, runId, leaseToken } = act.lease;
    const complete: v1.CompleteStepRequest = {
      namespace,
      runId,
      stepId: '',
      output,
      leaseToken,
      startedAt: wireTime(this.#started),
      stepName: this.name,
      branch: this.branch.path,
    };
    report(act, this, act.sendWhole('completeStep', complete));
  }

  #fail(detail: v1.ErrorDetail): void {
    const { act } = this;
    this.#last = detail;
    const hold = !act.alone(this);
    const startedAt = wireTime(this.#started);
    const fail = { ...this.place, error: detail, retryPolicy: this.retry, hold, startedAt };
    act.send('failStep', fail, (r, op) => {
      const failed = r.failedStep;
      logFailedStep(this, detail, failed);
      this.running = false;
      if (!failed?.scheduledRetry) {
        this.failure = detail;
        report(act, this, op);
      } else if (hold && act.cancelled && !this.clean) {
        hand(act, this, How.CANCELLED);
      } else {
        this.attempt++;
        const due = failed.retryIn ? act.now() + unix(failed.retryIn) : failed.retryAt ? unix(failed.retryAt) : 0;
        if (hold) return this.#retryAt(due);
        this.due = due;
        this.park(due - act.now());
        suspend(act);
      }
    });
  }

  value(): T {
    if (this.outcome === How.CANCELLED) throw cancelledError(this.name, this.#last, this.attempt - 1);
    if (this.outcome === How.RECORDED && this.record && !this.failing) {
      if (this.record.status === v1.StepStatus.FAILED) {
        throw stepError(this.name, this.record.error ?? v1.ErrorDetail.create(), this.record.attemptNumber);
      }
      return readRecord(this.act, this.name, this.record.output, this.schema);
    }
    if (this.failure) throw stepError(this.name, this.failure, this.attempt);
    return this.#got;
  }
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Whether a step's code may begin: its call is active, and nothing ends it. */
export function mayBegin(call: StepCall<unknown>): boolean {
  const { act } = call;
  return (
    call.state === State.ACTIVE && !call.failing && !(act.cancelled && !call.clean) && !act.quitted && !act.closing
  );
}

/** Milliseconds after which the server is told of a running step. */
export const ANNOUNCE_AFTER = 250;

/** The attempts whose code runs on a worker. One timer serves all that have just begun. */
export class Running {
  readonly all = new Set<Attempt>();
  /** Those that have not run for long, in the order in which they began. */
  readonly #fresh = new Set<Attempt>();
  #timer: NodeJS.Timeout | undefined;

  /** Adds an attempt; `long` is called if it still runs after 250 ms. */
  add(attempt: Attempt): void {
    this.all.add(attempt);
    this.#fresh.add(attempt);
    this.#timer ??= setTimeout(this.#look, ANNOUNCE_AFTER);
  }

  /** Removes an attempt that has ended. */
  delete(attempt: Attempt): void {
    this.all.delete(attempt);
    this.#fresh.delete(attempt);
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    const now = performance.now();
    for (const attempt of this.#fresh) {
      const left = attempt.since + ANNOUNCE_AFTER - now;
      if (left > 0.5) {
        this.#timer = setTimeout(this.#look, left);
        return;
      }
      this.#fresh.delete(attempt);
      attempt.call.long(attempt);
    }
  };
}
