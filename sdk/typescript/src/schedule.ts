// Schedules, as a client sees them.
import * as v1 from './v1/index.js';
import type { Client } from './client.js';
import { type RunDetails, type RunHandle, details } from './handle.js';
import { encodeInput } from './codec.js';
import { type Duration, checkOptions, choice, names, stamp, when, wholeMs, uuid7 } from './convert.js';
import { type Retry, policies, timeouts } from './options.js';

/** What can be changed of a schedule. */
export interface ScheduleChanges {
  /** Unique within the namespace. */
  name?: string;
  /** IANA name (UTC). */
  timeZone?: string;
  /** Task queue of the runs (that of the workflow, or `default`). */
  queue?: string;
  /** What to do at a tick while the last run is open (`allow`). */
  overlap?: 'allow' | 'skip' | 'buffer_one';
  /** Most missed ticks to fire after downtime (100). */
  maxCatchup?: number;
  /** A run starts up to this much after its tick. At most 24 h. */
  jitter?: Duration;
  tags?: Readonly<Record<string, string>>;
}

/** An update of a schedule. */
interface ScheduleUpdate extends ScheduleChanges {
  cron?: string;
  input?: unknown;
  nextFireAt?: Date;
  reason?: string;
}

/** Options of a new schedule. */
export interface ScheduleOptions extends ScheduleChanges {
  /** Make the schedule with the name what this call says, if there is one (false). */
  orUpdate?: boolean;
  /** Create it paused (false). */
  paused?: boolean;
  version?: string;
  stepRetry?: Retry;
  runRetry?: Retry;
  stepTimeout?: Duration;
  executionTimeout?: Duration;
  onFailure?: string;
  onFailureQueue?: string;
  requestId?: string;
}

/** The state of a schedule. */
export interface ScheduleDetails {
  id: string;
  name: string;
  workflowType: string;
  queue: string;
  cron: string;
  timeZone: string;
  enabled: boolean;
  overlap: 'allow' | 'skip' | 'buffer_one';
  totalRuns: number;
  nextFireAt: Date | undefined;
  lastFiredAt: Date | undefined;
  tags: Readonly<Record<string, string>>;
  /** Why it can no longer fire; empty if it can. */
  broken: string;
  wire: v1.WorkflowSchedule;
}

const CHANGES = ['name timeZone queue overlap maxCatchup jitter tags'] as const;
const OPTIONS = names<ScheduleOptions>()(
  ...CHANGES,
  'orUpdate paused version stepRetry runRetry stepTimeout executionTimeout onFailure onFailureQueue requestId',
);
const UPDATE = names<ScheduleUpdate>()(...CHANGES, 'cron input nextFireAt reason');

const OVERLAP = { allow: v1.OverlapPolicy.ALLOW, skip: v1.OverlapPolicy.SKIP, buffer_one: v1.OverlapPolicy.BUFFER_ONE };

export function createRequest(
  client: Client,
  target: { type: string; queue: string },
  cronExpr: string,
  input: unknown,
  o: ScheduleOptions,
): Partial<v1.CreateWorkflowScheduleRequest> {
  checkOptions(() => `the schedule of ${target.type}`, o, OPTIONS);
  const { name, timeZone, maxCatchup, version, tags, orUpdate } = o;
  const keeps = orUpdate === true && o.paused === undefined;
  return {
    namespace: client.namespace,
    taskQueue: o.queue || target.queue || 'default',
    workflowType: target.type,
    cronExpr,
    input: encodeInput(client.codec, target.type, '', input),
    enabled: keeps ? undefined : !o.paused,
    overlapPolicy: choice('option overlap', o.overlap, OVERLAP),
    timeouts: timeouts(o),
    onFailureWorkflow: o.onFailure,
    onFailureTaskQueue: o.onFailureQueue,
    requestId: o.requestId ?? uuid7(),
    jitterMs: wholeMs(o.jitter, 'jitter'),
    ...{ name, timeZone, maxCatchup, version, tags, orUpdate },
    ...policies(o),
  };
}

export function scheduleDetails(s: v1.WorkflowSchedule): ScheduleDetails {
  const { name, workflowType, timeZone, enabled, totalRuns, tags, broken } = s;
  const overlap = Object.entries(OVERLAP).find(([, policy]) => policy === s.overlapPolicy)?.[0] ?? 'allow';
  return {
    ...{ name, workflowType, timeZone, enabled, totalRuns, tags, broken },
    id: s.scheduleId,
    queue: s.taskQueue,
    cron: s.cronExpr,
    overlap: overlap as ScheduleDetails['overlap'],
    nextFireAt: when(s.nextFireAt),
    lastFiredAt: when(s.lastFiredAt),
    wire: s,
  };
}

/** A handle to one schedule. */
export class Schedule {
  readonly #client: Client;

  /** @internal */
  constructor(
    client: Client,
    /** Its id, or its name. */
    readonly id: string,
  ) {
    this.#client = client;
  }

  get #of(): { namespace: string; scheduleId: string } {
    return { namespace: this.#client.namespace, scheduleId: this.id };
  }

  /** Returns the current state. */
  async get(): Promise<ScheduleDetails> {
    const a = await this.#client.calls.getWorkflowSchedule(this.#of);
    return scheduleDetails(a.schedule as v1.WorkflowSchedule);
  }

  /** Changes the schedule in one commit; what is not given keeps its value. */
  async update(changes: ScheduleUpdate): Promise<ScheduleDetails> {
    checkOptions(() => 'an update of a schedule', changes, UPDATE);
    const { cron, queue, overlap, jitter, tags, input, nextFireAt, ...same } = changes;
    const request: Partial<v1.UpdateWorkflowScheduleRequest> = {
      ...this.#of,
      ...same,
      cronExpr: cron,
      taskQueue: queue,
      overlapPolicy: overlap && choice('option overlap', overlap, OVERLAP),
      jitterMs: jitter === undefined ? undefined : wholeMs(jitter, 'jitter'),
      tags: tags && { tags },
      nextFireAt: stamp(nextFireAt, 'nextFireAt'),
    };
    const { codec } = this.#client;
    if (input !== undefined) request.input = encodeInput(codec, (await this.get()).workflowType, '', input);
    const a = await this.#client.calls.updateWorkflowSchedule(request);
    return scheduleDetails(a.schedule as v1.WorkflowSchedule);
  }

  /** Stops it from firing. */
  async pause(reason = ''): Promise<void> {
    await this.#client.calls.pauseWorkflowSchedule({ ...this.#of, reason });
  }

  /** Lets it fire again. */
  async resume(reason = ''): Promise<void> {
    await this.#client.calls.resumeWorkflowSchedule({ ...this.#of, reason });
  }

  /** Deletes it; runs that it started remain. */
  async delete(reason = ''): Promise<void> {
    await this.#client.calls.deleteWorkflowSchedule({ ...this.#of, reason });
  }

  /** Fires it once now, in addition to its ticks. */
  async trigger(requestId = uuid7()): Promise<RunHandle<unknown>> {
    const a = await this.#client.calls.triggerWorkflowSchedule({ ...this.#of, requestId });
    return this.#client.run(a.runId);
  }

  /** Starts the runs of past ticks that have none yet. */
  async backfill(
    from: Date,
    to?: Date,
    reason = '',
  ): Promise<{ tick: Date | undefined; runId: string; existed: boolean }[]> {
    const range = { from: stamp(from, 'from'), to: stamp(to, 'to') };
    const a = await this.#client.calls.backfillWorkflowSchedule({ ...this.#of, ...range, reason });
    return a.ticks.map((t) => ({ tick: when(t.tick), runId: t.runId, existed: t.existed }));
  }

  /** Yields the runs that it started, newest first. */
  runs(): AsyncGenerator<RunDetails> {
    const ask = (page: v1.PageRequest) => this.#client.calls.listScheduleRuns({ ...this.#of, page });
    return this.#client.pages(ask, (a) => a.runs.map((w) => details(w, this.#client.codec)));
  }
}
