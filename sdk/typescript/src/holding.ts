// The time for which this worker holds a run under one lease.
import type * as v1 from './v1/index.js';
import { type PayloadInfo, startDigest } from './codec.js';
import { unix } from './convert.js';
import * as trace from './trace.js';
import type { Worker } from './worker.js';

/** A run that a worker holds: its task, the server's time, and what its payloads are bound to. */
export class Holding {
  task!: v1.Task;
  lease!: { namespace: string; runId: string; leaseToken: string };
  /** Monotonic time at which the task came. */
  since = 0;
  stepTimeout = 0;
  heartbeatTimeout = 0;
  /** Of this activation, with tracing. */
  span: trace.Span | undefined;
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
    this.span = task.leaseToken ? trace.activation(task) : undefined; // a replay has no lease
    this.#ahead = task.leaseExpiresAt ? unix(task.leaseExpiresAt) - length - this.#received : 0;
  }

  /** Ends the span of this activation. */
  endSpan(outcome: string): void {
    trace.end(this.span, outcome);
    this.span = undefined;
  }

  get codec(): Worker['options']['codec'] {
    return this.worker.options.codec;
  }

  /** Returns the time by the server's clock. */
  now(): number {
    return this.#received + this.#ahead + (performance.now() - this.since);
  }

  /** Returns PayloadInfo.start of the run. */
  startDigest(): string {
    const { workflowType, externalId, input } = this.task;
    return (this.#start ||= startDigest(workflowType, externalId, input?.data ?? new Uint8Array()));
  }

  /** Describes a step result for the codec. */
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
