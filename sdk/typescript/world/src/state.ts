// The rules of the event log. A run, its steps, hooks and waits are what its events make of them.
//
// Every reader applies the same entries in the same order, so all agree on which of two writers came first, and on which
// entries break a rule. Those stay in the log, but no reader shows them. A change of a rule would change what is recorded:
// it needs a new name of the signals.
import {
  EntityConflictError,
  HookNotFoundError,
  PreconditionFailedError,
  RunExpiredError,
  TooEarlyError,
  WorkflowWorldError,
} from '@workflow/errors';
import {
  type AnyEventRequest,
  type CreateEventRequest,
  type Event,
  type Hook,
  type HookConflictEvent,
  type RunCreatedEventRequest,
  type Step,
  type StructuredError,
  type Wait,
  type WorkflowRun,
  isTerminalStepStatus,
  isTerminalWorkflowRunStatus,
} from '@workflow/world';
import { ulid } from './values.js';

/** What is stored of a request to create an event. */
export interface EventRecord {
  event: AnyEventRequest | HookConflictEvent;
  /** Time in the id of the newest event that the writer knew. */
  stateUpdatedAt?: number | undefined;
}

/** What an entry of the log did: it is an event, a repetition without an effect, or broke a rule. */
export interface Verdict {
  event?: Event;
  error?: Error;
}

type Editable<T> = { -readonly [K in keyof T]: T[K] };
type AnyRun = Editable<Omit<WorkflowRun, 'status' | 'output' | 'error' | 'completedAt'>> & {
  status: WorkflowRun['status'];
  output?: unknown;
  error?: StructuredError;
  completedAt?: Date;
};

/** The state of one run. */
export class RunState {
  readonly events: Event[] = [];
  readonly steps = new Map<string, Step>();
  readonly hooks = new Map<string, Hook>();
  readonly waits = new Map<string, Wait>();
  /** Entries that were applied. */
  sequence = 0;
  readonly #run: AnyRun;
  readonly #gone = new Set<string>(); // hooks that were disposed, or whose token was taken
  #time = 0;
  #external = 0; // time in the id of the newest event from outside the workflow's code

  constructor(runId: string, created: RunCreatedEventRequest, at: Date) {
    const { deploymentId, workflowName, input, executionContext } = created.eventData;
    const base = { runId, deploymentId, workflowName, input, status: 'pending' as const, createdAt: at, updatedAt: at };
    this.#run = { ...base, ...defined({ specVersion: created.specVersion, executionContext }) };
    this.#add(created, at);
  }

  /** The run. */
  get run(): WorkflowRun {
    return { ...this.#run } as WorkflowRun;
  }

  /** Whether the run has ended. */
  get ended(): boolean {
    return isTerminalWorkflowRunStatus(this.#run.status);
  }

  /** Applies the next entry of the log. */
  apply(record: EventRecord, at: Date): Verdict {
    this.sequence++;
    const error = this.refusal(record, at);
    if (error) return error === 'repeated' ? {} : { error };
    return { event: this.#enter(record, at) };
  }

  /** Ends a run that the server ended without an event, as `kagzi workflow cancel` does. */
  stopped(cancelled: boolean, message: string, at: Date): void {
    if (this.ended) return;
    this.sequence++;
    const event: CreateEventRequest = cancelled
      ? { eventType: 'run_cancelled' }
      : { eventType: 'run_failed', eventData: { error: { message } } };
    this.#enter({ event: { ...event, specVersion: this.#run.specVersion } }, at);
  }

  /** Returns why an event must not be recorded, `repeated` if there is nothing to record, or undefined. */
  refusal({ event, stateUpdatedAt }: EventRecord, at: Date): Error | 'repeated' | undefined {
    const { runId, status } = this.#run;
    const id = event.correlationId ?? '';
    const done = `run ${runId} is already ${status}`;
    if (event.eventType === 'run_created') return new EntityConflictError(`run ${runId} already exists`);
    if (event.eventType === 'run_cancelled' && status === 'cancelled') return 'repeated';
    if (event.eventType === 'run_started' && status === 'running') return 'repeated';
    if (event.eventType === 'hook_received' || event.eventType === 'hook_disposed') {
      if (!this.hooks.has(id)) return new HookNotFoundError(id);
    } else if (this.ended) {
      const late = event.eventType === 'run_started' || event.eventType === 'step_started';
      return late ? new RunExpiredError(done) : new EntityConflictError(done);
    }
    if (stateUpdatedAt !== undefined && stateUpdatedAt < this.#external) {
      return new PreconditionFailedError(`run ${runId} has an event that the writer did not know`);
    }
    const step = this.steps.get(id);
    switch (event.eventType) {
      case 'step_created':
        return step && new EntityConflictError(`step ${id} already exists`);
      case 'step_started':
      case 'step_completed':
      case 'step_failed':
      case 'step_retrying':
        if (!step) return missing(`step ${id} of run ${runId}`);
        if (isTerminalStepStatus(step.status)) return new EntityConflictError(`step ${id} is already ${step.status}`);
        return event.eventType === 'step_started' ? tooEarly(step, at) : undefined;
      case 'hook_created':
      case 'hook_conflict':
        if (this.hooks.has(id) || this.#gone.has(id)) return new EntityConflictError(`hook ${id} already exists`);
        return undefined;
      case 'wait_created':
        return this.waits.has(id) ? new EntityConflictError(`wait ${id} already exists`) : undefined;
      case 'wait_completed': {
        const wait = this.waits.get(id);
        if (!wait) return missing(`wait ${id} of run ${runId}`);
        return wait.status === 'completed' ? new EntityConflictError(`wait ${id} is already completed`) : undefined;
      }
      default:
        return undefined;
    }
  }

  /** Whether a hook holds its token: its run goes on, and it was not disposed. It may be about to be created. */
  mayHold(hookId: string): boolean {
    return !this.ended && !this.#gone.has(hookId);
  }

  #add(event: EventRecord['event'], at: Date): Event {
    this.#time = Math.max(this.#time, at.getTime());
    const { runId } = this.#run;
    const made = { ...event, runId, eventId: `evnt_${ulid(this.#time, this.sequence)}`, createdAt: at };
    // Its data is for a run that does not exist yet.
    if (made.eventType === 'run_started') delete made.eventData;
    this.events.push(made);
    this.#run.updatedAt = at;
    return made;
  }

  #enter({ event, stateUpdatedAt }: EventRecord, at: Date): Event {
    const made = this.#add(event, at);
    const run = this.#run;
    const id = event.correlationId ?? '';
    const step = this.steps.get(id);
    if ((event.eventType === 'hook_received' || event.eventType === 'step_completed') && stateUpdatedAt === undefined) {
      this.#external = this.#time;
    }
    switch (event.eventType) {
      case 'run_started':
        run.status = 'running';
        run.startedAt ??= at;
        break;
      case 'run_completed':
        this.#end('completed', at);
        run.output = event.eventData.output;
        break;
      case 'run_failed':
        this.#end('failed', at);
        run.error = structured(event.eventData.error, undefined, event.eventData.errorCode);
        break;
      case 'run_cancelled':
        this.#end('cancelled', at);
        break;
      case 'step_created': {
        const { stepName, input } = event.eventData;
        const { runId } = run;
        const fresh = { runId, stepId: id, stepName, input, status: 'pending' as const, attempt: 0 };
        this.steps.set(id, { ...fresh, createdAt: at, updatedAt: at, ...defined({ specVersion: event.specVersion }) });
        break;
      }
      case 'step_started':
        if (!step) break;
        this.#step(step, { status: 'running', attempt: step.attempt + 1, startedAt: step.startedAt ?? at }, at);
        delete step.retryAfter;
        break;
      case 'step_completed':
        if (step) this.#step(step, { status: 'completed', output: event.eventData.result, completedAt: at }, at);
        break;
      case 'step_failed': {
        const error = structured(event.eventData.error, event.eventData.stack);
        if (step) this.#step(step, { status: 'failed', error, completedAt: at }, at);
        break;
      }
      case 'step_retrying': {
        const error = structured(event.eventData.error, event.eventData.stack);
        const { retryAfter } = event.eventData;
        if (step) this.#step(step, { status: 'pending', error, ...defined({ retryAfter }) }, at);
        break;
      }
      case 'hook_created': {
        const { token, metadata, isWebhook = true } = event.eventData;
        const owner = { ownerId: '', projectId: '', environment: '', isWebhook, ...defined({ metadata }) };
        const { specVersion } = event;
        this.hooks.set(id, {
          runId: run.runId,
          hookId: id,
          token,
          createdAt: at,
          ...owner,
          ...defined({ specVersion }),
        });
        break;
      }
      case 'hook_conflict':
      case 'hook_disposed':
        this.hooks.delete(id);
        this.#gone.add(id);
        break;
      case 'wait_created': {
        const { resumeAt } = event.eventData;
        const times = { resumeAt, createdAt: at, updatedAt: at };
        this.waits.set(id, { waitId: id, runId: run.runId, status: 'waiting', ...times });
        break;
      }
      case 'wait_completed': {
        const wait = this.waits.get(id);
        if (wait) Object.assign(wait, { status: 'completed', completedAt: at, updatedAt: at });
        break;
      }
      default: // hook_received changes no entity
    }
    return made;
  }

  #end(status: WorkflowRun['status'], at: Date): void {
    Object.assign(this.#run, { status, completedAt: at });
    this.hooks.clear(); // their tokens are free for other runs
  }

  #step(step: Step, changes: Partial<Step>, at: Date): void {
    Object.assign(step, changes, { updatedAt: at });
  }
}

/** Returns the properties that are set. */
function defined<T extends object>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, one]) => one !== undefined)) as Partial<T>;
}

function missing(what: string): Error {
  return new WorkflowWorldError(`${what} is unknown`, { status: 404 });
}

function tooEarly(step: Step, at: Date): Error | undefined {
  const left = (step.retryAfter?.getTime() ?? 0) - at.getTime();
  if (left <= 0) return undefined;
  return new TooEarlyError(`step ${step.stepId} waits for its retry`, { retryAfter: Math.ceil(left / 1000) });
}

/** Returns an error of an event, which is text or an object, as an entity has it. */
function structured(error: unknown, stack?: string, code?: string): StructuredError {
  const known = typeof error === 'object' && error !== null ? (error as Partial<StructuredError>) : {};
  const message = typeof error === 'string' ? error : (known.message ?? 'unknown error');
  return { message, ...defined({ stack: stack ?? known.stack, code: code ?? known.code }) };
}
