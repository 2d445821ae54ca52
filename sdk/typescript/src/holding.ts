// The time for which this worker holds a run under one lease.
import * as v1 from './v1/index.js';
import { type PayloadInfo, startDigest } from './codec.js';
import { unix, MAX_NAME, cleanText } from './convert.js';
import { type Span, startSpan } from './intercept.js';
import type { Worker } from './worker.js';
import type { Activation } from './activation.js';
import { Op } from './outbox.js';

/** A run that a worker holds: its task, the server's time, and what its payloads are bound to. */
export class Holding {
  task!: v1.Task;
  lease!: { namespace: string; runId: string; leaseToken: string };
  /** Monotonic time at which the task came. */
  since = 0;
  stepTimeout = 0;
  heartbeatTimeout = 0;
  /** Of this activation, with tracing. */
  span: Span | undefined;
  #received = 0;
  #ahead = 0;
  #start = '';

  constructor(readonly worker: Worker) {}

  /** Begins the time for which this worker holds the run under one lease. */
  hold(task: v1.Task): void {
    this.task = task;
    this.lease = { namespace: task.namespace, runId: task.runId, leaseToken: task.leaseToken };
    this.since = performance.now();
    this.#received = Date.now();
    this.stepTimeout = task.timeouts?.startToCloseTimeoutMs || 600_000;
    this.heartbeatTimeout = task.timeouts?.heartbeatTimeoutMs ?? 0;
    const length = Math.max(this.worker.session.lease, this.heartbeatTimeout);
    this.span = task.leaseToken ? startSpan(task) : undefined; // a replay has no lease
    this.#ahead = task.leaseExpiresAt ? unix(task.leaseExpiresAt) - length - this.#received : 0;
  }

  endSpan(outcome: string): void {
    this.span?.setAttribute('kagzi.outcome', outcome);
    this.span?.end();
    this.span = undefined;
  }

  get codec(): Worker['options']['codec'] {
    return this.worker.options.codec;
  }

  now(): number {
    return this.#received + this.#ahead + (performance.now() - this.since);
  }

  startDigest(): string {
    const { workflowType, externalId, input } = this.task;
    return (this.#start ||= startDigest(workflowType, externalId, input?.data ?? new Uint8Array()));
  }

  payloadInfo(kind: 'step', step: string): PayloadInfo {
    return { kind, start: this.codec ? this.startDigest() : '', step };
  }

  /** Logs a payload that is better stored elsewhere. */
  warnLarge(what: string, p: v1.Payload, name: string): void {
    if (p.data.length <= 256 << 10) return;
    this.worker.log.warn(
      `large ${what} of ${name}: ${p.data.length} bytes; each activation of the run transfers it whole`,
    );
  }
}

const INTERVAL = 250;

/** The note of one activation: at most one is sent in 250 ms, the last of several. */
export class Notes {
  #text: string | undefined;
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly act: Activation) {}

  /** Sets the text, which is cut to 255 bytes. */
  set(text: string): void {
    const { act } = this;
    if (act.owing > 0 || act.ended || act.away) return;
    this.#text = cleanText(text, MAX_NAME);
    const wait = this.#next - performance.now();
    if (wait <= 0) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), wait);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#text === undefined || this.act.ended) return;
    const { runId, leaseToken } = this.act.task;
    const note = v1.SetNote.create({ runId, leaseToken, note: this.#text });
    this.#text = undefined;
    this.#next = performance.now() + INTERVAL;
    this.act.worker.session.outbox.enqueue(new Op('setNote', note, undefined, 0));
  }

  /** Drops what was not sent, as the run is parked or over. */
  rest(): void {
    this.#text = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Sends a note again whose stream broke, unless there is a newer one. */
  lost(text: string): void {
    if (this.#text === undefined) this.set(text);
  }
}
