// Workers run workflows and steps.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import * as v1 from './v1/index.js';
import { Activation } from './activation.js';
import { Cache, resume } from './parking.js';
import { unreadable, askCancel } from './history.js';
import { check, isCheck } from './replay.js';
import { decode, encode, inputInfo } from './codec.js';
import { MAX_NAME, checkOptions, choice, cleanText, millis, printable, show, unix } from './convert.js';
import { Dev } from './dev.js';
import { ConfigError, DecodeError, KagziError, ServerError } from './errors.js';
import { aroundRun, aroundStep } from './intercept.js';
import { type Log, textLog } from './log.js';
import type { Op } from './outbox.js';
import { PLATFORM, type RunAbout, WORKER_OPTIONS, type WorkerOptions, ownBuild, withSDK } from './options.js';
import { resolve } from './profile.js';
import { Run } from './run.js';
import { Attempt, type StepFunction, Running } from './step.js';
import { scope } from './scope.js';
import { Session } from './session.js';
import { Turns } from './turns.js';
import { Workflow } from './workflow.js';

/** Milliseconds for each of the last exchanges with the server. */
const PARTING = 5000;
const MAX_CACHE = 100_000;
const DIVERGENCE = { pause: 'pause', fail: 'fail', warn: 'warn' } as const;

type AnyWorkflow = Workflow<never, unknown>;

/** Runs workflows for a server. */
export class Worker {
  readonly log: Log;
  readonly session: Session;
  readonly cache: Cache;
  /** @internal What is used, with defaults for what is not given. */
  readonly options: Pick<WorkerOptions, 'codec'> &
    Required<Pick<WorkerOptions, 'onDivergence' | 'removedPatches' | 'alwaysSuspend' | 'interceptors'>>;
  /** @internal */
  readonly running = new Running();
  /** @internal */
  readonly replaced = new Map<string, StepFunction<unknown>>();
  /** @internal */
  readonly turns: Turns;
  /** @internal */
  dev: Dev | undefined;
  draining = false;

  readonly #types = new Map<string, AnyWorkflow>();
  readonly #runs = new Map<string, Activation>();
  readonly #hello: v1.RegisterRequest;
  readonly #drainTimeout: number;
  readonly #handleSignals: boolean;
  #begun = false;
  #signals = 0;
  #asked!: () => void;
  #again!: () => void;
  #emptied: (() => void) | undefined;
  #registered!: () => void;
  /** Resolves when the worker is registered. */
  readonly registered = new Promise<void>((resolve) => (this.#registered = resolve));

  constructor(workflows: readonly AnyWorkflow[], o: WorkerOptions = {}) {
    checkOptions(() => 'the worker', o, WORKER_OPTIONS);
    if (workflows.length === 0) throw new ConfigError('a worker needs at least one workflow: serve([order])');
    for (const one of workflows) {
      if (!(one instanceof Workflow))
        throw new ConfigError(`${show(one)} is no workflow: make one with workflow(name, fn)`);
      if (this.#types.has(one.name)) throw new ConfigError(`workflow type ${one.name} is given twice`);
      this.#types.set(one.name, one);
    }
    const named = [...new Set(workflows.map((w) => w.options.queue).filter((q) => q !== undefined))].sort();
    const queue = o.queue ?? named[0] ?? 'default';
    const limits = Object.entries(o.typeLimits ?? {});
    const whole: Record<string, number | undefined> = { maxConcurrent: o.maxConcurrent, queueLimit: o.queueLimit };
    for (const [type, limit] of limits) {
      whole[`typeLimits.${type}`] = limit;
      if (!this.#types.has(type))
        throw new ConfigError(`typeLimits names ${show(type)}, which is no workflow type of this worker`);
    }
    for (const [what, value] of Object.entries(whole)) {
      if (value !== undefined && !(Number.isInteger(value) && value >= 1 && value < 2 ** 31)) {
        throw new ConfigError(`${what} is ${show(value)}, want at least 1`);
      }
    }
    const onDivergence = choice('onDivergence', o.onDivergence, DIVERGENCE);
    const cache = o.cache ?? 1000;
    if (!(cache >= 0 && cache <= MAX_CACHE)) throw new ConfigError(`cache is ${show(cache)}, want 0 to ${MAX_CACHE}`);
    const host = o.hostname ?? cleanText(hostname(), MAX_NAME);
    if (Buffer.byteLength(host) > MAX_NAME)
      throw new ConfigError(`hostname has ${host.length} characters, want at most ${MAX_NAME} bytes`);
    this.log = o.log ?? textLog();
    this.#drainTimeout = millis(o.drainTimeout ?? 300_000, 'drainTimeout');
    this.#handleSignals = o.handleSignals ?? true;
    const { codec, removedPatches = [], alwaysSuspend = false, interceptors = [] } = o;
    this.options = { codec, onDivergence, removedPatches, alwaysSuspend, interceptors };
    this.cache = new Cache(alwaysSuspend ? 0 : cache, o.cacheBytes ?? 256 << 20);
    const endpoint = resolve(o);
    for (const warning of endpoint.warnings) this.log.warn(`settings: ${warning}`);
    const { maxConcurrent = 100, version, labels, workerId } = o;
    this.#hello = v1.RegisterRequest.create({
      namespace: endpoint.namespace,
      taskQueue: queue,
      taskQueues: [...new Set([...(o.queues ?? []), ...named])].filter((q) => q !== queue),
      workflowTypes: [...this.#types.keys()].sort(),
      hostname: host,
      pid: process.pid,
      ...{ maxConcurrent, version, labels, workerId },
      capabilities: withSDK(o.capabilities),
      platform: PLATFORM,
      pausesRuns: true,
      takesBatches: true,
      instanceId: randomUUID(),
      buildId: o.buildId || ownBuild(workflows),
      keepsRuns: this.cache.limit,
      queueConcurrencyLimit: o.queueLimit,
      workflowTypeConcurrency: limits.map(([workflowType, limit]) => ({ workflowType, maxConcurrent: limit })),
    });
    this.session = new Session(endpoint, this.#hello, this, this.log, maxConcurrent);
    this.turns = new Turns(this.session.thread, this.session.outbox, this.log);
    if (process.env['KAGZI_DEV'] === '1') this.dev = Dev.install();
  }

  /** The worker's id; empty before the first registration. */
  get id(): string {
    return this.session.workerId;
  }

  /** Whether the worker serves a workflow type. */
  serves(type: string): boolean {
    return this.#types.has(type);
  }

  /**
   * Registers the worker and runs workflows until a signal, until stop is called, or until an operator drains it. It rejects
   * when the server refuses the worker, and when runs were released unfinished.
   *
   * With the argument `-kagzi-check`, which the SDK removes when it is imported, or with KAGZI_CHECK=1 in the environment, it
   * runs no step but replays the open runs of its types, as `kagzi check` wants it. Then the exit code tells whether all fit.
   */
  async run(): Promise<void> {
    if (this.#begun) throw new ConfigError('the worker has run already: make a new one');
    this.#begun = true;
    if (isCheck()) {
      if (!(await check(this, this.#hello))) process.exitCode = 1;
      return;
    }
    const asked = new Promise<void>((done) => (this.#asked = done));
    const again = new Promise<void>((done) => (this.#again = done));
    const onSignal = (): void => this.#askEnd();
    if (this.#handleSignals) for (const s of SIGNALS) process.on(s, onSignal);
    process.on('unhandledRejection', onRejection);
    workers.add(this);
    const served = this.session.serve();
    let failure: Error | undefined;
    try {
      await Promise.race([asked, served]);
      if (!this.session.refused) failure = await this.#drain(served, again);
    } finally {
      for (const s of SIGNALS) process.off(s, onSignal);
      await this.#close();
      workers.delete(this);
      if (workers.size === 0) process.off('unhandledRejection', onRejection);
    }
    if (this.session.refused) throw this.#advised(this.session.refused);
    if (failure) throw failure;
  }

  /** Asks a worker that runs to drain and end. */
  stop(): void {
    this.#asked();
  }

  // The code of runs and steps.

  /** @internal Decodes the input, calls the function of a run, and encodes its result. */
  async call(act: Activation): Promise<v1.Payload> {
    const { task } = act;
    const { codec, interceptors } = this.options;
    const workflow = this.#types.get(task.workflowType) as unknown as Workflow<unknown, unknown>;
    const { name, options, fn } = workflow;
    const byServer = Boolean(task.failedRunId) && (task.input?.data.includes('kagzi/workflow.failed') ?? false);
    let input: unknown;
    try {
      const info = inputInfo(task.workflowType, task.externalId);
      input = decode(byServer ? undefined : codec, task.input, info, `input of workflow type ${name}`, options.input);
    } catch (e) {
      throw e instanceof DecodeError ? unreadable(e) : e;
    }
    const run = new Run(act, act.rootBranch, false);
    const { runId, workflowType, attempt } = task;
    const about: RunAbout = { runId, workflowType, attempt, replaying: act.history.size > 0, check: act.replaying };
    const output = await aroundRun(interceptors, about, () => fn(run, input));
    const p = encode(codec, output, { kind: 'output', runId: task.runId }, `output of workflow type ${name}`);
    act.warnLarge('output', p, name);
    return p;
  }

  /** @internal Calls the code of an attempt of a step. */
  aroundStep<T>(attempt: Attempt, fn: StepFunction<T>): T | Promise<T> {
    const { interceptors } = this.options;
    const plain = interceptors.length === 0 && !attempt.call.act.span;
    return plain ? fn(attempt) : aroundStep(interceptors, attempt, fn);
  }

  // Events of the connection.

  answer(op: Op, r: v1.SessionResponse): void {
    const act = op.act as Activation;
    this.turns.post(act, () => act.answered(op, r));
  }

  task(task: v1.Task): void {
    this.turns.post(this.#runs.get(task.runId), () => this.#took(task));
  }

  #took(task: v1.Task): void {
    const old = this.#runs.get(task.runId);
    if (!old) return this.#begin(task);
    if (task.leaseToken === old.task.leaseToken || task.leaseToken === old.next?.leaseToken) this.session.addCredit();
    else if (old.leaving?.parks) {
      if (old.next) this.session.addCredit(); // it has overtaken the answer
      old.next = task;
      old.nextPauses = false;
    } else {
      old.lose('claimed again by this worker');
      this.#begin(task);
    }
  }

  #begin(task: v1.Task): void {
    const kept = this.cache.take(task.runId);
    if (kept) {
      this.#runs.set(task.runId, kept);
      if (!this.draining && resume(kept, task)) return;
      this.log.debug(`the code of run ${task.runId} in memory does not fit what happened meanwhile`);
      kept.over('suspended');
    }
    const act = new Activation(this, task);
    this.#runs.set(task.runId, act);
    if (this.draining) act.giveBack();
    else if (!this.#types.has(task.workflowType)) {
      this.log.error(`no workflow for type ${printable(task.workflowType)}; releasing run ${task.runId}`);
      act.giveBack();
    } else if (task.nextHistoryToken || task.base) void this.#load(act);
    else act.begin(task.history);
  }

  async #load(act: Activation): Promise<void> {
    try {
      const steps = await this.session.loadHistory(act.task);
      act.post(() => {
        if (!act.ended && !act.quitted) act.begin(steps);
      });
    } catch (e) {
      this.log.error(`cannot load the history of run ${act.task.runId}; releasing it: ${String(e)}`);
      act.post(() => act.giveBack());
    }
  }

  /** Handles a message about a lease of a run: the present one, or the next. */
  #about(
    m: { runId: string; leaseToken: string },
    present: (act: Activation) => void,
    next?: (act: Activation) => void,
  ): void {
    this.turns.post(this.#runs.get(m.runId), () => {
      const act = this.#runs.get(m.runId);
      if (act?.next?.leaseToken === m.leaseToken) next?.(act);
      if (act?.task.leaseToken === m.leaseToken) present(act);
    });
  }

  #loseNext(act: Activation): void {
    this.session.forgetTask(act.next as v1.Task);
    act.next = undefined;
  }

  cancelTask(c: v1.CancelTask): void {
    const { graceUntil } = c;
    this.#about(
      c,
      (act) => {
        if (graceUntil) {
          if (!askCancel(act, unix(graceUntil))) return;
          this.log.info(
            `run ${c.runId} is being cancelled; its code may clean up: ${printable(c.reason?.message ?? '')}`,
          );
        } else if (!act.closing) act.lose(c.reason?.message ?? '');
      },
      (act) => {
        if (graceUntil) Object.assign(act.next as v1.Task, { cancelRequested: true, cancelGraceUntil: graceUntil });
        else this.#loseNext(act);
      },
    );
  }

  pauseTask(p: v1.PauseTask): void {
    this.#about(
      p,
      (act) => {
        if (p.takenBack) act.goOn();
        else if (act.askPause()) this.log.info(`run ${p.runId} is being paused; its running steps finish first`);
      },
      (act) => (act.nextPauses = !p.takenBack),
    );
  }

  waitOver(m: v1.WaitOver): void {
    this.#about(m, (act) => act.hint(m.stepName));
  }

  lost(lease: v1.Lease): void {
    const lose = (act: Activation): void => {
      if (!act.closing) act.lose('not renewed by the server');
    };
    this.#about(lease, lose, (act) => this.#loseNext(act));
  }

  renewed(): void {
    this.turns.post(undefined, () => {
      for (const act of this.#runs.values()) act.startBodies();
    });
  }

  expired(silent: number): void {
    for (const act of [...this.#runs.values()]) {
      if (act.quitted || silent < act.heartbeatTimeout) continue;
      const text = `no contact with the server for ${(silent / 1000).toFixed(0)} s, longer than the lease`;
      this.log.warn(`${text}; giving up run ${act.task.runId}`);
      act.giveBack();
    }
  }

  noteLost(note: v1.SetNote): void {
    this.#about(note, (act) => act.notes.lost(note.note));
  }

  ready(): void {
    for (const act of this.#runs.values()) {
      if (act.ops.size > 0) act.again = act.issued;
      act.goOn(); // the new session tells again which runs are to be paused
    }
    this.#registered();
  }

  drain(): void {
    if (this.draining) return; // each heartbeat is answered so
    this.log.info('asked by the server to drain');
    this.#asked();
  }

  /** @internal Drops a run that is no longer held, or keeps its code in memory. Its next lease may have begun. */
  forget(act: Activation, keep = false): void {
    const { next } = act;
    act.next = undefined;
    act.endSpan(keep ? 'suspended' : act.cause);
    if (this.#runs.get(act.task.runId) === act) this.#runs.delete(act.task.runId);
    this.session.forget(act);
    if (keep) this.cache.put(act);
    if (next) {
      this.#begin(next);
      if (act.nextPauses) this.#runs.get(next.runId)?.askPause();
    }
    if (this.draining && this.#runs.size === 0) this.#emptied?.();
  }

  // The end.

  #askEnd(): void {
    this.#asked();
    if (++this.#signals > 1) this.#again();
  }

  async #drain(served: Promise<void>, again: Promise<void>): Promise<Error | undefined> {
    this.draining = true;
    this.cache.clear();
    this.log.info(`worker ${this.id} draining: ${this.#runs.size} active runs`);
    this.session.drain();
    let failed: Error | undefined;
    if (this.#runs.size > 0) {
      const emptied = new Promise<void>((done) => (this.#emptied = done));
      await Promise.race([emptied, served, again, pause(Math.max(this.#drainTimeout, 0))]);
      const active = [...this.#runs.keys()].sort();
      if (active.length > 0) {
        this.log.warn(`releasing unfinished runs to other workers: ${active.join(', ')}`);
        failed = new KagziError(`released ${active.length} unfinished runs`);
        for (const act of [...this.#runs.values()]) act.giveBack();
        if (this.#runs.size > 0) await Promise.race([emptied, served, pause(PARTING)]);
      }
    }
    await this.session.part(PARTING);
    return failed;
  }

  async #close(): Promise<void> {
    for (const act of [...this.#runs.values()]) act.over('released');
    this.cache.clear();
    this.session.stop();
    const until = performance.now() + PARTING;
    while (this.running.all.size > 0 && performance.now() < until) await pause(20);
    if (this.running.all.size === 0) return;
    const names = [...this.running.all].map((a) => a.step).sort();
    this.log.warn(`code of steps still runs; the worker ends without it: ${names.join(', ')}`);
  }

  #advised(e: Error): Error {
    if (!(e instanceof ServerError)) return e;
    let advice = '';
    const { workerId } = this.#hello;
    if (e.code === 'CONFLICT' && workerId) {
      advice = ` (another worker has the id ${workerId}; that of a killed worker is free once it counts as lost, or after \`kagzi worker offline ${workerId}\`)`;
    } else if (e.code === 'UNAUTHORIZED') {
      advice = this.session.endpoint.apiKey
        ? ' (its API key is unknown, expired or revoked, or lacks the permission)'
        : ' (the worker has no API key: set apiKey, KAGZI_API_KEY_FILE, or api-key-file in the profile)';
    }
    const { code, subject, subjectId, metadata, status } = e;
    const text = `the server refused the worker: ${e.detail}${advice}`;
    return new ServerError(text, code, subject, subjectId, metadata, status);
  }
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
const workers = new Set<Worker>();

/** Fails only the run, or the attempt of a step, whose code left a rejection unhandled. */
function onRejection(reason: unknown): void {
  const at = scope.getStore();
  if (at instanceof Activation) at.post(() => at.unhandled(reason));
  else if (at instanceof Attempt) at.call.finish(at, undefined, { error: reason });
  else if (process.listenerCount('unhandledRejection') === 1) throw reason; // as without a worker
}

const pause = (ms: number): Promise<void> => delay(ms, undefined, { ref: false });

/** Makes a worker and runs it until a signal ends it: `await serve([order], { queue: 'orders' })`. */
export async function serve(workflows: readonly AnyWorkflow[], options: WorkerOptions = {}): Promise<void> {
  await new Worker(workflows, options).run();
}
