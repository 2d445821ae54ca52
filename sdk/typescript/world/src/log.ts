// The log of a run: the signals of one Kagzi run, which the server orders, numbers and keeps.
import { type Client, type RunHandle, ServerError } from '@kagzi/sdk';
import { EntityConflictError, RunExpiredError, WorkflowRunNotFoundError, WorkflowWorldError } from '@workflow/errors';
import type { RunCreatedEventRequest } from '@workflow/world';
import { randomUUID } from 'node:crypto';
import { type EventRecord, RunState, type Verdict } from './state.js';
import { TYPES, isOpen } from './types.js';
import { pack, unpack } from './values.js';

/** Events of a run; the server keeps 10,000 signals, and some may be refused events. */
export const MAX_EVENTS = 9000;
const CACHED = 500;
const GAP_TRIES = 50;

/** The log of one run, as far as this process has read it. */
export class RunLog {
  readonly #awaited = new Map<string, Verdict | undefined>();
  #reading: Promise<void> = Promise.resolve();
  #queued: Promise<void> | undefined;

  constructor(
    readonly runId: string,
    readonly client: Client,
    readonly handle: RunHandle<unknown>,
    readonly state: RunState,
  ) {}

  /** Reads what is new. What was written before the call is in the state when it resolves. */
  refresh(): Promise<void> {
    if (!this.#queued) {
      const turn = this.#reading
        .catch(() => undefined)
        .then(() => {
          this.#queued = undefined; // a later caller needs a read that begins later
          return this.#read();
        });
      this.#queued = this.#reading = turn;
    }
    return this.#queued;
  }

  /** Reads what is new, and whether the server ended the run without an event. */
  async settle(): Promise<void> {
    if (this.state.ended) return;
    const run = await this.client.get(this.handle.id);
    await this.refresh(); // after the status: an ended run gets no further signal
    if (this.state.ended || isOpen(run.status)) return;
    const why = run.error?.detail ? `: ${run.error.detail}` : '';
    const message = `the Kagzi server ended the run as ${run.status}${why}`;
    this.state.stopped(run.status === 'CANCELLED', message, run.finishedAt ?? new Date());
  }

  /** Appends an entry and returns what it did. It rejects with the error of the rule that it broke. */
  async append(record: EventRecord): Promise<Verdict> {
    const id = `event/${randomUUID()}`;
    const ends = ['run_completed', 'run_failed', 'run_cancelled'].includes(record.event.eventType);
    this.#awaited.set(id, undefined);
    try {
      await this.handle.signal(ends ? 'end' : 'event', pack(record), { id });
      for (let tries = 0; tries < GAP_TRIES; tries++) {
        await this.refresh();
        const verdict = this.#awaited.get(id);
        if (verdict?.error) throw verdict.error;
        if (verdict) return verdict;
        await new Promise((done) => setTimeout(done, 10));
      }
      throw new WorkflowWorldError(`the log of run ${this.runId} has a gap`, { status: 503 });
    } catch (e) {
      throw e instanceof ServerError ? await this.#refused(e, record) : e;
    } finally {
      this.#awaited.delete(id);
    }
  }

  async #refused(e: ServerError, record: EventRecord): Promise<Error> {
    if (e.code === 'RESOURCE_EXHAUSTED' && e.metadata['field'] !== 'payload') {
      // A log without room has none for its end either.
      await this.handle.terminate(`the log of ${this.runId} is full: ${e.detail}`);
      await this.settle();
    } else if (e.code === 'PRECONDITION_FAILED') {
      await this.settle();
    } else return e;
    const error = this.state.refusal(record, new Date());
    if (error instanceof Error) return error;
    const done = `run ${this.runId} is already ${this.state.run.status}`;
    return error ? new EntityConflictError(done) : new RunExpiredError(done);
  }

  async #read(): Promise<void> {
    if (this.state.ended && this.#awaited.size === 0) return;
    for await (const s of this.handle.signals({
      after: this.state.sequence,
      pageSize: this.state.sequence ? 20 : 500,
    })) {
      if (s.sequence !== this.state.sequence + 1) break; // the entry before it is not visible yet
      const verdict = this.state.apply(unpack(s.value()) as EventRecord, s.receivedAt ?? new Date());
      if (this.#awaited.has(s.id)) this.#awaited.set(s.id, verdict);
    }
  }
}

/** The logs of the runs that this process has touched lately. */
export class Logs {
  readonly #logs = new Map<string, RunLog>();

  constructor(
    readonly client: Client,
    readonly queue: string,
  ) {}

  /** Creates a run. It rejects with EntityConflictError if there is one. */
  async create(runId: string, created: RunCreatedEventRequest): Promise<RunLog> {
    const tags = { run: runId, workflow: created.eventData.workflowName.slice(0, 255) };
    const options = { id: runId, reuse: 'never', queue: this.queue, tags } as const;
    const handle = await this.client.start(TYPES.run, pack(created), options);
    if (handle.existed) throw new EntityConflictError(`run ${runId} already exists`);
    return this.open(runId);
  }

  /** Returns the log of a run, with what it had when this process read it last. */
  async open(runId: string): Promise<RunLog> {
    const known = this.#logs.get(runId);
    if (known) {
      this.#logs.delete(runId);
      this.#logs.set(runId, known); // the map's order is that of use
      return known;
    }
    const d = await this.client.getById(runId).catch((e: unknown) => {
      throw e instanceof ServerError && e.code === 'NOT_FOUND' ? new WorkflowRunNotFoundError(runId) : e;
    });
    if (d.workflowType !== TYPES.run) throw new WorkflowRunNotFoundError(runId);
    const created = unpack(d.input()) as RunCreatedEventRequest;
    const state = new RunState(runId, created, d.createdAt ?? new Date());
    const log = this.#logs.get(runId) ?? new RunLog(runId, this.client, this.client.run(d.runId), state);
    this.#logs.set(runId, log);
    for (const oldest of this.#logs.keys()) {
      if (this.#logs.size <= CACHED) break;
      this.#logs.delete(oldest);
    }
    return log;
  }

  /** Returns the up-to-date log of a run. */
  async fresh(runId: string): Promise<RunLog> {
    const log = await this.open(runId);
    await log.settle();
    return log;
  }
}
