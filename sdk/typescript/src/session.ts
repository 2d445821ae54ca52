// The worker's connection: one stream, on which operations of runs are pipelined.
//
// A new stream begins with a heartbeat that names all runs; what is unanswered follows in order. A thread beats while code
// keeps the event loop to itself.
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, type ClientDuplexStream, type ServiceError, status as Status } from '@grpc/grpc-js';
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { BeatThread } from './beat.js';
import { between, monotonic } from './convert.js';
import { ConfigError, ServerError, callError, detailError, repeatable } from './errors.js';
import type { Log } from './log.js';
import { Outbox, Op } from './outbox.js';
import type { Endpoint } from './profile.js';
import { dial, metadata, serialize, unary } from './wire.js';
import type { Worker } from './worker.js';

const PATH = '/kagzi.v1.WorkerService/Session';
const HELLO_TIMEOUT = 15_000;
const FATAL = new Set<Status>([
  Status.INVALID_ARGUMENT,
  Status.ALREADY_EXISTS,
  Status.NOT_FOUND,
  Status.UNAUTHENTICATED,
  Status.PERMISSION_DENIED,
  Status.UNIMPLEMENTED,
]);

/** A moment by the monotonic and by the wall clock: the monotonic one may stop while a machine sleeps. */
type Moment = ReturnType<typeof moment>;
const moment = () => ({ mono: monotonic(), wall: Date.now() });
const elapsed = (m: Moment): number => Math.max(monotonic() - m.mono, Date.now() - m.wall);

type Stream = ClientDuplexStream<Buffer, v1.SessionResponse[]>;

export class Session {
  workerId = '';
  keepsOrder = true;
  resumesRuns = false;
  /** Milliseconds that the server keeps the worker's runs without contact. */
  lease = 30_000;
  interval = 10_000;
  /** Lease tokens by run id. */
  readonly held = new Map<string, string>();
  refused: Error | undefined;
  draining = false;

  #parting = false;
  #stopped = false;
  #client: Client | undefined;
  #stream: Stream | undefined;
  #streams = 0;
  #tasks = 0;
  readonly outbox: Outbox;
  #confirmed: Moment = { mono: 0, wall: 0 };
  #contact = moment();
  #givenUp = 0;
  readonly stats = new Stats();
  #beats: NodeJS.Timeout | undefined;
  #watch: NodeJS.Timeout | undefined;
  #wake: AbortController | undefined;
  #onParted: (() => void) | undefined;
  readonly thread: BeatThread;

  constructor(
    readonly endpoint: Endpoint,
    private readonly hello: v1.RegisterRequest,
    private readonly events: Worker,
    private readonly log: Log,
    private readonly limit: number,
  ) {
    this.thread = new BeatThread(endpoint, log);
    this.outbox = new Outbox((op, r) => events.answer(op, r));
  }

  // Called by the worker.

  async serve(): Promise<void> {
    this.thread.start();
    this.#watch = setInterval(() => this.#look(), 1000);
    let failures = 0;
    while (!this.#stopped && !this.#parting) {
      const streams = this.#streams;
      let reason: Error;
      try {
        this.#client ??= await dial(this.endpoint);
        reason = await this.#oneStream(this.#client);
      } catch (e) {
        reason = e as Error;
      }
      this.#closeStream();
      if (this.#stopped || this.#parting) break;
      const final = reason instanceof ConfigError || (reason instanceof ServerError && FATAL.has(reason.status));
      if (final && !this.#forgetId(reason)) {
        this.refused = reason;
        break;
      }
      failures = this.#streams > streams ? 1 : failures + 1;
      if (final) continue;
      const pause = between(0, 1000 * Math.min(60, 2 ** ((this.draining ? Math.min(failures, 2) : failures) - 1)));
      const again = `connecting again within ${(pause / 1000).toFixed(1)} s`;
      this.log.warn(`no session with the server at ${this.endpoint.addresses.join(',')}; ${again}: ${reason.message}`);
      this.#wake = new AbortController();
      await delay(pause, undefined, { signal: this.#wake.signal }).catch(() => undefined);
    }
    this.#onParted?.();
  }

  /** Forgets a run that is no longer held, and lets the server send another. */
  forget(act: Activation): void {
    this.outbox.forget(act);
    this.forgetTask(act.task);
  }

  /** Forgets a run that was never begun, and lets the server send another. */
  forgetTask(task: v1.Task): void {
    if (this.held.get(task.runId) === task.leaseToken) this.held.delete(task.runId);
    this.addCredit();
  }

  addCredit(): void {
    if (this.outbox.epoch && !this.draining) this.outbox.addCredit(1);
  }

  drain(): void {
    this.draining = true;
    this.#goodbye(true);
    this.#wake?.abort();
  }

  /** Reports the last figures and deregisters; waits for that at most so long. */
  async part(ms: number): Promise<void> {
    this.#parting = true;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      const parted = (this.#onParted = (): void => {
        clearTimeout(timer);
        resolve();
      });
      if (!this.outbox.epoch) return parted();
      this.#beat(() => {
        const sent = this.#goodbye(false, (r) => {
          if (r.goodbye) this.log.info(`worker ${this.workerId} deregistered`);
          parted();
        });
        if (!sent) parted();
      });
    });
  }

  stop(): void {
    this.#stopped = true;
    clearInterval(this.#watch);
    this.#closeStream();
    this.#client?.close();
    this.thread.stop();
    this.#wake?.abort();
  }

  /** Whether new work may begin: less than 80 % of the lease have passed since the last confirmed heartbeat. */
  trusted(): boolean {
    return elapsed(this.#confirmed) < 0.8 * this.lease;
  }

  /** Fetches the rest of a history, or of a task with a base all. */
  async loadHistory(task: v1.Task): Promise<v1.Step[]> {
    const steps = task.base ? [] : [...task.history];
    let token = task.nextHistoryToken;
    for (let failures = 0; ;) {
      try {
        const client = this.#client as Client;
        const request = v1.GetHistoryRequest.create({ namespace: task.namespace, runId: task.runId, token });
        const service = v1.WorkerServiceDefinition;
        const page = await unary(client, service, service.methods.getHistory, request, metadata(this.endpoint));
        steps.push(...page.history);
        token = page.nextHistoryToken;
        failures = 0;
        if (!token) return steps;
      } catch (e) {
        failures++;
        if ((e instanceof ServerError && FATAL.has(e.status)) || failures > 5) throw e;
        await delay(between(0, 1000 * 2 ** (failures - 1)));
      }
    }
  }

  // The stream.

  /** Drops an id that the server chose and no longer accepts; false for other refusals. */
  #forgetId(e: Error): boolean {
    const taken = e instanceof ServerError && (e.code === 'NOT_FOUND' || e.code === 'CONFLICT');
    if (!taken || !this.workerId || this.workerId === this.hello.workerId) return false;
    this.log.info(`the server no longer accepts the worker id ${this.workerId}; registering for a new one`);
    this.workerId = '';
    return true;
  }

  /** Serves one stream; returns why it ended. */
  #oneStream(client: Client): Promise<Error> {
    const hello = { ...this.hello, workerId: this.workerId || this.hello.workerId };
    const at = moment();
    const sent = metadata(this.endpoint);
    const stream: Stream = client.makeBidiStreamRequest(PATH, (bytes: Buffer) => bytes, decoded, sent);
    this.#stream = stream;
    return new Promise((resolve) => {
      const end = (e: Error): void => {
        clearTimeout(timer);
        stream.removeListener('data', all);
        stream.cancel();
        resolve(e);
      };
      const timer = setTimeout(() => end(new Error('the server did not answer hello in time')), HELLO_TIMEOUT);
      const came = (r: v1.SessionResponse): void => {
        if (this.outbox.epoch) return this.#came(r);
        clearTimeout(timer);
        if (r.welcome) return this.#welcomed(r.welcome, stream, at);
        const d = r.error;
        const passes = !d || repeatable(d) || d.code === v1.ErrorCode.PRECONDITION_FAILED;
        end(passes ? new Error(d?.message ?? 'the server answered hello with something else') : refusal(d));
      };
      const all = (messages: v1.SessionResponse[]): void => messages.forEach(came);
      stream.on('data', all);
      stream.on('drain', () => this.outbox.drained());
      stream.on('error', (e: ServiceError) => end(callError(e)));
      stream.on('end', () => end(new Error('the server closed the session')));
      stream.write(serialize(v1.SessionRequest, { seq: 1, after: 0, batch: [], hello }));
    });
  }

  #welcomed(r: v1.RegisterResponse, stream: Stream, at: Moment): void {
    this.interval = r.heartbeatIntervalMs || r.heartbeatIntervalSecs * 1000 || 10_000;
    this.lease = r.leaseMs || Math.max(30_000, 3 * this.interval);
    this.keepsOrder = r.keepsOrder;
    this.resumesRuns = r.resumesRuns;
    const again = this.workerId ? ' again, on a new session' : '';
    this.workerId = r.workerId;
    if (this.held.size === 0) this.#confirmed = at;
    this.#contact = at;
    this.#givenUp = 0;
    this.#tasks = 0;
    this.outbox.open(stream, ++this.#streams, r.takesBatches);
    const { namespace, addresses } = this.endpoint;
    this.log.info(`worker ${r.workerId} registered${again}: namespace ${namespace}, server ${addresses.join(',')}`);
    this.#beat();
    this.#schedule();
    this.events.ready();
    this.outbox.repeat();
    if (this.draining) this.#goodbye(true);
    else this.outbox.addCredit(Math.max(this.limit - this.held.size, 0));
  }

  #closeStream(): void {
    clearTimeout(this.#beats);
    const own = this.outbox.close();
    this.#stream?.cancel();
    this.#stream = undefined;
    for (const op of own) {
      if (op.kind === 'setNote') this.events.noteLost(op.body as v1.SetNote);
      else op.answer?.(v1.SessionResponse.create(), op);
    }
  }

  #came(r: v1.SessionResponse): void {
    if (r.task) {
      this.held.set(r.task.runId, r.task.leaseToken);
      this.#tasks++;
      this.events.task(r.task);
    } else if (r.cancelTask) this.events.cancelTask(r.cancelTask);
    else if (r.pauseTask) this.events.pauseTask(r.pauseTask);
    else if (r.waitOver) this.events.waitOver(r.waitOver);
    else if (r.drain) this.events.drain();
    else this.outbox.answered(r);
  }

  #goodbye(drain: boolean, answer?: (r: v1.SessionResponse) => void): boolean {
    const goodbye = v1.DeregisterRequest.create({ workerId: this.workerId, drain });
    return this.outbox.enqueue(new Op('goodbye', goodbye, undefined, 0, answer));
  }

  // Heartbeats and the lease.

  #schedule(): void {
    const step = Math.min(250, this.interval / 40);
    const now = Date.now();
    const due = Math.floor((now + this.interval) / step) * step;
    this.#beats = setTimeout(() => {
      const late = Date.now() - due;
      if (late > Math.max(500, this.interval / 10)) this.thread.wasLate(late, this.lease);
      this.#beat();
      this.#schedule();
    }, due - now);
  }

  #beat(then?: () => void): void {
    this.thread.beaten(this.workerId, this.held.size, this.interval);
    const tasksReceived = this.#tasks;
    const held = [...this.held].map(([runId, leaseToken]) => v1.Lease.create({ runId, leaseToken }));
    const counts = this.stats.take();
    const sent = moment();
    const message = v1.HeartbeatRequest.create({
      workerId: this.workerId,
      activeCount: held.length,
      completedDelta: counts.completed,
      failedDelta: counts.failed,
      stats: this.stats.wire(),
      heldIsWhole: true,
      tasksReceived,
      held,
    });
    const answered = (r: v1.SessionResponse): void => {
      if (!this.#beaten(r, sent)) this.stats.giveBack(counts);
      then?.();
    };
    const op = new Op('heartbeat', message, undefined, 0, answered);
    if (!this.outbox.enqueue(op, true)) answered(v1.SessionResponse.create());
  }

  #beaten(r: v1.SessionResponse, sent: Moment): boolean {
    if (r.error) {
      if (repeatable(r.error)) this.log.warn(`heartbeat failed; trying again at the next interval: ${r.error.message}`);
      else {
        this.log.info(`heartbeat refused; registering again: ${r.error.message}`);
        this.#stream?.cancel();
      }
      return false;
    }
    if (!r.heartbeat) return false; // the stream broke
    for (const lost of r.heartbeat.lost) this.events.lost(lost);
    for (const cancelling of r.heartbeat.cancelling) this.events.cancelTask(cancelling);
    this.#contacted(sent);
    if (r.heartbeat.shouldDrain) this.events.drain();
    return true;
  }

  #contacted(at: Moment): void {
    if (at.mono <= this.#confirmed.mono) return;
    this.#confirmed = this.#contact = at;
    this.#givenUp = 0;
    this.events.renewed();
  }

  /** Looks once a second: takes note of the thread's beats, and gives up runs after twice the lease without contact. */
  #look(): void {
    const mono = this.thread.confirmed();
    if (mono > 0) this.#contacted({ mono, wall: Date.now() - monotonic() + mono });
    const silent = elapsed(this.#contact);
    if (this.held.size === 0 || silent < 2 * this.lease || silent - this.#givenUp < this.lease) return;
    this.#givenUp = silent;
    this.events.expired(silent);
  }
}

const STATUS_OF: Partial<Record<v1.ErrorCode, Status>> = {
  [v1.ErrorCode.INVALID_ARGUMENT]: Status.INVALID_ARGUMENT,
  [v1.ErrorCode.CONFLICT]: Status.ALREADY_EXISTS,
  [v1.ErrorCode.NOT_FOUND]: Status.NOT_FOUND,
  [v1.ErrorCode.UNAUTHORIZED]: Status.PERMISSION_DENIED,
};

function decoded(bytes: Buffer): v1.SessionResponse[] {
  const r = v1.SessionResponse.decode(bytes);
  return r.batch.length === 0 ? [r] : r.batch.map((one) => v1.SessionResponse.decode(one));
}

/** Returns the error of a hello that was refused in a message of the stream. */
function refusal(d: v1.ErrorDetail): ServerError {
  return detailError(d, STATUS_OF[d.code] ?? Status.UNIMPLEMENTED);
}

export class Stats {
  /** Runs that have ended since the last accepted heartbeat. */
  #ended = { completed: 0, failed: 0 };
  #runs = 0;
  #ms = 0;
  #cpu = { at: monotonic(), used: process.cpuUsage() };

  count(status: v1.WorkflowStatus | undefined, ms: number): void {
    if (status === v1.WorkflowStatus.COMPLETED) this.#ended.completed++;
    if (status === v1.WorkflowStatus.FAILED) this.#ended.failed++;
    this.#runs++;
    this.#ms += ms;
  }

  take(): { completed: number; failed: number } {
    const ended = this.#ended;
    this.#ended = { completed: 0, failed: 0 };
    return ended;
  }

  giveBack({ completed, failed }: { completed: number; failed: number }): void {
    this.#ended.completed += completed;
    this.#ended.failed += failed;
  }

  wire(): v1.WorkerStats {
    const now = monotonic();
    const used = process.cpuUsage(this.#cpu.used);
    const cpuPercent = (used.user + used.system) / 10 / Math.max(now - this.#cpu.at, 1);
    this.#cpu = { at: now, used: process.cpuUsage() };
    return v1.WorkerStats.create({
      cpuPercent,
      memoryBytes: process.memoryUsage.rss(),
      uptimeSeconds: Math.floor(process.uptime()),
      averageRunMs: this.#runs ? this.#ms / this.#runs : 0,
    });
  }
}
