// What workflow code calls.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { Branch } from './branch.js';
import type { Call } from './call.js';
import { type RunChildOptions, type RunInfo, type SignalOptions, type StepOptions, Workflow } from './workflow.js';
import { type Schema, decode, encodeInput, startOfSignals } from './codec.js';
import {
  type Duration,
  MAX_DELAY,
  checkName,
  checkOptions,
  choice,
  millis,
  names,
  show,
  uuidOf,
  when,
} from './convert.js';
import { userLine } from './lines.js';
import { ConfigError, ContinueAsNew, Misuse, RunError, codeName, cancelledError } from './errors.js';
import { endsOf, setEnds } from './firsts.js';
import { draw, patched, readRecord, reading, record } from './history.js';
import { type Log, logOf } from './log.js';
import { CHILD, startRequest, wireRetry } from './options.js';
import { scope } from './scope.js';
import { ChildCall, type ChildState, ChildrenCall, SignalCall, SleepCall } from './waits.js';
import { Attempt, StepCall, type StepFunction } from './step.js';

/** The first of several that has ended: its place, and its promise, which has settled. */
export interface FirstOf<T> {
  index: number;
  promise: Promise<T>;
}

/** The first of several that has ended: its name, and its promise, which has settled. */
export type FirstNamed<T extends Record<string, Waitable>> = {
  [K in keyof T]: { key: K; promise: Promise<Result<T[K]>> };
}[keyof T];

/** What run.first waits for: a promise of the SDK's, or a child. */
export type Waitable = Promise<unknown> | Child<unknown>;
type Result<W> = W extends Child<infer T> ? T : Awaited<W>;

const STEP_OPTIONS = names<StepOptions>()('retry timeout schema');
const SIGNAL_OPTIONS = names<SignalOptions>()('limit schema');
const RUN_CHILD_OPTIONS = names<RunChildOptions>()(...CHILD, 'parentClose');
const { ABANDON, CANCEL, TERMINATE } = v1.ParentClosePolicy;
const CLOSE = { abandon: ABANDON, cancel: CANCEL, terminate: TERMINATE };

/**
 * A run, as one branch of its code sees it. Its calls are durable: their results are recorded, and a replay gets the same.
 * Between calls the code must be deterministic: no clock, no randomness, no I/O; do such work in steps.
 */
export class Run {
  readonly #act: Activation;
  readonly #branch: Branch;
  readonly #clean: boolean;

  /** @internal */
  constructor(act: Activation, branch: Branch, clean: boolean) {
    this.#act = act;
    this.#branch = branch;
    this.#clean = clean;
  }

  /** Fails the run if the call comes from code of a step. */
  #within(what: string, name?: string): void {
    const at = scope.getStore();
    if (!(at instanceof Attempt) || at.call.act !== this.#act) return;
    const error = new Misuse(
      `${what}${name === undefined ? '' : ` ${show(name)}`} is called inside step ${at.step}, at ${userLine()}; a step makes no calls of its run`,
      'within_step',
    );
    this.#act.post(() => this.#act.misused(error));
    throw error;
  }

  #make<T>(call: Call<T>, what: string, name?: string): Promise<T> {
    this.#within(what, name);
    setEnds(call.promise, call);
    return this.#act.make(call);
  }

  /** Runs a function that may throw what fails the run. */
  #checked<T>(fn: () => T): T {
    try {
      return fn();
    } catch (e) {
      throw this.#act.quitted ? e : this.#act.reject(e);
    }
  }

  /** Follows a promise that is made of calls. */
  #follow<T>(promise: Promise<T>): Promise<T> {
    this.#act.firsts.follow(promise);
    return promise;
  }

  /**
   * Runs a function as a step and returns its result. It runs again when it failed and the policy allows another attempt,
   * and when its result could not be recorded because the worker died: pass `idempotencyKey` to external systems.
   *
   * A second use of a name becomes `name:2`; a name that is in use by another call fails the run. The promise rejects with
   * a StepError when the step failed for good, TimedOut when its last attempt timed out, Cancelled.
   */
  step<T>(name: string, fn: StepFunction<T>, options: StepOptions<T> = {}): Promise<T> {
    return this.#checked(() => {
      checkOptions(() => `step ${show(name)}`, options, STEP_OPTIONS);
      const timeout = options.timeout === undefined ? 0 : millis(options.timeout, `timeout of step ${show(name)}`);
      if (options.timeout !== undefined && !(timeout > 0)) {
        throw new ConfigError(`timeout of step ${show(name)} is ${show(options.timeout)}, want more than 0`);
      }
      const retry = options.retry && wireRetry(options.retry);
      const call = new StepCall(this.#act, this.#branch, name, fn, options.schema, retry, timeout, this.#clean);
      return this.#make(call, 'step', name);
    });
  }

  /**
   * Waits. The run holds no worker meanwhile and survives restarts. A cancellation of the run ends the sleep early; then
   * the next call throws Cancelled. At most 10 years; 0 or less does not park the run.
   */
  sleep(name: string, duration: Duration): Promise<void> {
    return this.#checked(() => {
      const ms = millis(duration, `duration of sleep ${show(name)}`);
      if (ms > MAX_DELAY)
        throw new ConfigError(`duration of sleep ${show(name)} is ${show(duration)}, want at most 10 years`);
      return this.#make(new SleepCall(this.#act, this.#branch, name, ms, 0, this.#clean), 'sleep', name);
    });
  }

  /** Waits until a time; one in the past does not park the run. */
  sleepUntil(name: string, time: Date): Promise<void> {
    return this.#checked(() => {
      const until = time.getTime();
      if (Number.isNaN(until)) throw new ConfigError(`time of sleep ${show(name)} is an invalid Date`);
      const left = until - this.#act.now();
      return this.#make(new SleepCall(this.#act, this.#branch, name, left, until, this.#clean), 'sleep', name);
    });
  }

  /**
   * Waits for the next signal of a name and returns its value. Signals are stored from the start of the run; each is
   * received once, in order of arrival. A wait is recorded under the signal's name.
   *
   * The promise rejects with TimedOut when the limit has passed, with a StepError when the value does not fit the schema
   * (the signal is consumed), and with Cancelled.
   */
  signal<T = unknown>(name: string, options: SignalOptions<T> = {}): Promise<T> {
    return this.#checked(() => {
      checkOptions(() => `the wait for signal ${show(name)}`, options, SIGNAL_OPTIONS);
      const limit = options.limit === undefined ? undefined : millis(options.limit, `limit of signal ${show(name)}`);
      const call = new SignalCall(this.#act, this.#branch, name, options.schema, limit, this.#clean);
      return this.#make(call, 'the wait for signal', name);
    });
  }

  /**
   * Waits until the first of several has ended, whether it settled with a result or an error: of a list, or of an object
   * whose keys name them. It is the one whose result reached the code first, the same in every replay; of several that
   * ended with one result, the earlier. The others go on. Await the `promise` of what it returns for the result.
   */
  first<T>(waits: readonly (Promise<T> | Child<T>)[]): Promise<FirstOf<T>>;
  first<T extends Record<string, Waitable>>(waits: T): Promise<FirstNamed<T>>;
  async first(waits: readonly Waitable[] | Record<string, Waitable>): Promise<unknown> {
    this.#within('run.first');
    const keys = Array.isArray(waits) ? undefined : Object.keys(waits);
    const all: Promise<unknown>[] = Object.values(waits).map((one: Waitable) =>
      one instanceof Child ? one.waiting(this) : one,
    );
    if (all.length === 0) throw new ConfigError('run.first: nothing to wait for');
    const followed = all.map((promise) => {
      if (!(promise instanceof Promise))
        throw new ConfigError(`run.first: ${show(promise)} is neither a promise nor a child`);
      return endsOf(promise) ?? this.#act.firsts.follow(promise);
    });
    this.#branch.lines = this.#branch.ownResult ? [] : this.#branch.lines;
    const index = await this.#act.firsts.wait(followed);
    return keys ? { key: keys[index], promise: all[index] } : { index, promise: all[index] };
  }

  /** Starts a branch: a line of execution of its own, whose calls go through the `run` that the function gets. */
  branch<T>(fn: (run: Run) => Promise<T> | T): Promise<T> {
    this.#within('run.branch');
    if (this.#act.quitted) return new Promise(() => undefined);
    const branch = new Branch(this.#act, this.#branch);
    const code = async (): Promise<T> => {
      try {
        return await fn(new Run(this.#act, branch, this.#clean));
      } finally {
        branch.ended();
      }
    };
    return this.#follow(code());
  }

  /**
   * Calls a function for each item in a branch of its own, at most `concurrency` at a time, and returns the results in
   * order. It rejects with the first error; the other branches go on.
   */
  map<T, R>(
    items: Iterable<T>,
    fn: (run: Run, item: T, index: number) => Promise<R> | R,
    options: { concurrency?: number } = {},
  ): Promise<R[]> {
    const list = [...items];
    const width = options.concurrency ?? Infinity;
    if (!(width >= 1)) throw new ConfigError(`concurrency of run.map is ${show(width)}, want at least 1`);
    const fork = (index: number): Promise<R> => this.branch((run) => fn(run, list[index] as T, index));
    if (list.length <= width) return this.#follow(Promise.all(list.map((_, n) => fork(n))));
    const pool = async (): Promise<R[]> => {
      const all: Promise<R>[] = [];
      let busy: Promise<R>[] = [];
      for (let n = 0; n < list.length; n++) {
        if (busy.length >= width) {
          const { promise } = await this.first(busy);
          await promise;
          busy = busy.filter((one) => one !== promise);
        }
        const one = fork(n);
        all.push(one);
        busy.push(one);
      }
      return Promise.all(all);
    };
    return this.#follow(pool());
  }

  /**
   * Starts a run as a child of this one; the promise resolves when the start is on the server's disk. It rejects with a
   * StepError that has the server's code when the start is refused, such as CONFLICT for an id that an open run has.
   */
  startChild<In, Out>(
    name: string,
    workflow: Workflow<In, Out>,
    input: In,
    options?: RunChildOptions,
  ): Promise<Child<Out>>;
  startChild<Out = unknown>(
    name: string,
    workflow: string,
    input?: unknown,
    options?: RunChildOptions,
  ): Promise<Child<Out>>;
  startChild(name: string, workflow: unknown, input: unknown, options: RunChildOptions = {}): Promise<Child<unknown>> {
    const started = this.#checked(() => {
      const act = this.#act;
      const known = workflow instanceof Workflow ? (workflow as Workflow<unknown, unknown>) : undefined;
      const type = checkName('workflow', known?.name ?? workflow);
      checkOptions(() => `child ${show(name)}`, options, RUN_CHILD_OPTIONS);
      const parentClosePolicy = choice('parentClose', options.parentClose, CLOSE);
      const request = (): Partial<v1.StartChildRequest> => {
        const id = options.id ?? '';
        const p = encodeInput(act.codec, type, id, input);
        const queue = known?.options.queue ?? act.task.taskQueue;
        const child = startRequest(act.task.namespace, type, p, queue, act.now(), { ...options, reuse: 'reject' });
        child.parentRunId = act.task.runId;
        return { child, parentClosePolicy };
      };
      const call = new ChildCall(act, this.#branch, name, type, request, this.#clean);
      return this.#make(call, 'the start of child', name).then((state) => {
        state.workflowType = type;
        state.externalId = options.id ?? '';
        return new Child(this, act, state, known?.options.output);
      });
    });
    return this.#follow(started);
  }

  /** Starts a child run and returns its result. It rejects with a RunError when the child ended without one. */
  child<In, Out>(name: string, workflow: Workflow<In, Out>, input: In, options?: RunChildOptions): Promise<Out>;
  child<Out = unknown>(name: string, workflow: string, input?: unknown, options?: RunChildOptions): Promise<Out>;
  child(name: string, workflow: unknown, input?: unknown, options?: RunChildOptions): Promise<unknown> {
    const started = this.startChild(name, workflow as string, input, options);
    return this.#follow(started.then((child) => child.result(this)));
  }

  /** Waits until all children have ended, and returns their results in order. It wakes the run only once. */
  waitAll<T>(children: readonly Child<T>[]): Promise<T[]> {
    const waits = this.ended(children.map((c) => c.state)).then(() => {
      const outcomes = children.map((c) => c.outcome());
      const errors = outcomes.flatMap((o) => ('error' in o ? [o.error] : []));
      if (errors.length === 1) throw errors[0];
      if (errors.length > 1) {
        throw new AggregateError(errors, `${errors.length} of ${children.length} children ended without a result`);
      }
      return outcomes.map((o) => ('value' in o ? o.value : (undefined as T)));
    });
    return this.#follow(waits);
  }

  /** @internal */
  ended(children: readonly ChildState[]): Promise<void> {
    return this.#make(new ChildrenCall(this.#act, this.#branch, children, this.#clean), 'the wait for children');
  }

  /**
   * Runs a function whose `run` makes calls although the run is being cancelled, until the grace period ends:
   * `catch (e) { if (e instanceof Cancelled) await run.cleanup((run) => run.step('refund', refund)); throw e; }`.
   */
  cleanup<T>(fn: (run: Run) => Promise<T> | T): Promise<T> {
    const clean = new Run(this.#act, this.#branch, true);
    return this.#follow((async () => fn(clean))());
  }

  /** Whether the run is being cancelled, as far as the code has been told. */
  get cancelled(): boolean {
    return this.#act.cancelled;
  }

  /** When the grace period of the cancellation ends. It may change in a replay. */
  get graceUntil(): Date | undefined {
    return this.#act.graceUntil ? new Date(this.#act.graceUntil) : undefined;
  }

  /** Returns the time of the server's clock. It is recorded: replays return the same. */
  now(): Date {
    this.#within('run.now');
    return new Date(record(this.#act, this.#branch, 'kagzi:now', () => new Date(this.#act.now()).toISOString()));
  }

  /** Returns a random number from 0 to below 1, the same in every replay. */
  random(): number {
    this.#within('run.random');
    return draw(this.#act, this.#branch, 6).readUIntBE(0, 6) / 2 ** 48;
  }

  /** Returns a random UUID (version 4), the same in every replay. */
  uuid(): string {
    this.#within('run.uuid');
    return uuidOf(draw(this.#act, this.#branch, 16), 4);
  }

  /**
   * Returns whether the run takes the new way at a change of its code: true for a run that reaches this place for the first
   * time with the new code, false in a replay of one that has passed it without the patch. The answer is recorded. When no
   * run of the old way is left, remove the old way and the call, and name the id in the worker's `removedPatches`.
   */
  patched(id: string): boolean {
    this.#within('run.patched');
    return patched(this.#act, this.#branch, id);
  }

  /**
   * Ends the run and starts the next one, of the same type, in one commit: it keeps the history of a loop short. It throws,
   * and the workflow function must let that pass. The next run inherits the external id, queue, policies, tags, parent,
   * children, and the signals that this run has not received.
   */
  continueAsNew(input?: unknown): never {
    this.#within('run.continueAsNew');
    const act = this.#act;
    if (act.cancelled && !this.#clean) throw cancelledError('continue as new');
    const { workflowType, externalId, input: own } = act.task;
    const signals = act.codec ? startOfSignals(act.startDigest(), own) : '';
    throw new ContinueAsNew(encodeInput(act.codec, workflowType, externalId, input, signals));
  }

  /** Sets the progress text of the run, which lists show; it is cut to 255 bytes. It is not part of the history. */
  note(text: string): void {
    this.#act.notes.set(text);
  }

  /** What the run was started with. */
  get info(): RunInfo {
    const { worker, task } = this.#act;
    const { runId, workflowType, namespace, version, externalId, attempt, tags, traceparent } = task;
    return {
      ...{ runId, workflowType, namespace, version, externalId, attempt, tags, traceparent },
      queue: task.taskQueue,
      deadline: when(task.deadlineAt),
      parentRunId: task.parentRunId ?? '',
      scheduleId: task.scheduleId ?? '',
      scheduledAt: when(task.scheduledAt),
      failedRunId: task.failedRunId ?? '',
      workerId: worker.id,
    };
  }

  /** The logger of workflow code: silent in replay, so that each line is written once. */
  get log(): Log {
    const branch = this.#branch;
    const { worker, task } = this.#act;
    return logOf((level, message, fields) => {
      if (this.#act.quitted || this.#act.replaying) return;
      const { runId: run, workflowType: type, attempt, traceparent } = task;
      const trace = traceparent.split('-')[1];
      const write = (): void => worker.log[level](message, { run, type, attempt, ...(trace && { trace }), ...fields });
      if (branch.replayed) branch.lines.push(write);
      else write();
    });
  }
}

/** A child run that its parent can wait for. */
export class Child<Out> {
  readonly #run: Run;
  readonly #act: Activation;
  readonly #schema: Schema<Out> | undefined;
  #waiting: Promise<Out> | undefined;
  /** @internal */
  readonly state: ChildState;

  /** @internal */
  constructor(run: Run, act: Activation, state: ChildState, schema: Schema<Out> | undefined) {
    this.#run = run;
    this.#act = act;
    this.state = state;
    this.#schema = schema;
  }

  /** The child's run id. */
  get runId(): string {
    return this.state.runId;
  }

  /**
   * Waits until the child has ended and returns its result; may be called more than once. In another branch, or under
   * cleanup, pass its `run`. It rejects with a RunError when the child ended without a result, and with Cancelled.
   */
  result(run: Run = this.#run): Promise<Out> {
    const waits = run.ended([this.state]).then(() => {
      const outcome = this.outcome();
      if ('error' in outcome) throw outcome.error;
      return outcome.value;
    });
    this.#act.firsts.follow(waits);
    return waits;
  }

  /** @internal Waits in a branch of its own, the same for all who wait so. */
  waiting(run: Run): Promise<Out> {
    return (this.#waiting ??= run.branch((branch) => this.result(branch)));
  }

  /** @internal */
  outcome(): { value: Out } | { error: RunError } {
    const { name, workflowType, externalId } = this.state;
    const step = this.state.step as v1.Step;
    const act = this.#act;
    if (step.status === v1.StepStatus.FAILED) {
      const { message, type, code, stack, metadata } = step.error ?? v1.ErrorDetail.create();
      const withParent = Boolean(metadata['cancelled_with_parent']);
      const runId = metadata['child_run_id'] || step.childRunId || this.runId;
      const facts = { type, code: codeName(code), stack, step: name, workflowType, externalId, withParent };
      return { error: new RunError(runId, metadata['child_status'] || 'FAILED', message, facts) };
    }
    if (step.overriddenBy) return { value: readRecord(act, name, step.output, this.#schema) };
    const { child_run_id: owner, ...metadata } = step.output?.metadata ?? {};
    const p = { data: step.output?.data ?? new Uint8Array(), metadata };
    const info = { kind: 'output' as const, runId: owner || step.childRunId || this.runId };
    const read = (): Out => decode(act.codec, p, info, `result of child ${name}`, this.#schema);
    return { value: reading(act, name, read) };
  }
}
