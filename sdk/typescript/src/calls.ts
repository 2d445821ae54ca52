// Options of calls, and what a run knows of itself.
import type { Schema } from './codec.js';
import type { Duration } from './convert.js';
import { names } from './known.js';
import { CHILD, type ChildOptions, type Retry } from './policy.js';

/** Options of a step. */
export interface StepOptions<T = unknown> {
  /** (The run's stepRetry, else 3 attempts.) */
  retry?: Retry;
  /** Of one attempt, from the start of the function (the run's stepTimeout, else 600 s). */
  timeout?: Duration;
  /** Schema of the result: the code gets what it makes of the recorded value. */
  schema?: Schema<T>;
}

/** Options of a wait for a signal. */
export interface SignalOptions<T = unknown> {
  /** Longest wait; 0 takes only a signal that has come (no limit). */
  limit?: Duration;
  /** Schema of the value. */
  schema?: Schema<T>;
}

/** Options of a child run. */
export interface RunChildOptions extends ChildOptions {
  /** What happens to an open child when this run ends (`abandon`). */
  parentClose?: 'abandon' | 'cancel' | 'terminate';
}

export const STEP_OPTIONS = names<StepOptions>()('retry timeout schema');
export const SIGNAL_OPTIONS = names<SignalOptions>()('limit schema');
export const RUN_CHILD_OPTIONS = names<RunChildOptions>()(...CHILD, 'parentClose');

/** What the run was started with, and which worker runs it: the same in every replay, but attempt and workerId. */
export interface RunInfo {
  runId: string;
  workflowType: string;
  namespace: string;
  queue: string;
  version: string;
  externalId: string;
  attempt: number;
  tags: Readonly<Record<string, string>>;
  deadline: Date | undefined;
  parentRunId: string;
  scheduleId: string;
  scheduledAt: Date | undefined;
  failedRunId: string;
  /** W3C trace context of the start; empty if there is none. */
  traceparent: string;
  workerId: string;
}
