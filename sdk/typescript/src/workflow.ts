// Workflows: functions that a worker runs and replays.
import type { Run } from './run.js';
import type { Schema } from './codec.js';
import { checkName, checkOptions, names, type Duration } from './convert.js';
import { ConfigError } from './errors.js';
import type { ChildOptions, Retry } from './options.js';

/** Options of a workflow. */
export interface WorkflowOptions<In = unknown, Out = unknown> {
  /** Task queue of starts, and of workers that serve it (`default`). */
  queue?: string;
  /** Schema of the input, of any Standard Schema library: the function gets what it makes of the input. */
  input?: Schema<In>;
  /** Schema of the result, as those who wait for it read it. */
  output?: Schema<Out>;
}

/** The function of a workflow. It must be deterministic: with the same input and results it makes the same calls. */
export type WorkflowFunction<In, Out> = (run: Run, input: In) => Promise<Out> | Out;

/** A workflow type with its function. */
export class Workflow<In, Out> {
  /** @internal */
  constructor(
    /** Name of the type, 1 to 255 characters of A-Z a-z 0-9 . _ : / - */
    readonly name: string,
    readonly options: WorkflowOptions,
    readonly fn: WorkflowFunction<In, Out>,
  ) {}
}

const OPTIONS = names<WorkflowOptions>()('queue input output');

/** Makes a workflow of a function: `workflow('order', { queue: 'orders' }, async (run, order: Order) => …)`. */
export function workflow<In = null, Out = unknown>(name: string, fn: WorkflowFunction<In, Out>): Workflow<In, Out>;
export function workflow<In = null, Out = unknown>(
  name: string,
  options: WorkflowOptions<In, Out>,
  fn: WorkflowFunction<In, Out>,
): Workflow<In, Out>;
export function workflow<In, Out>(
  name: string,
  options: WorkflowOptions<In, Out> | WorkflowFunction<In, Out>,
  fn?: WorkflowFunction<In, Out>,
): Workflow<In, Out> {
  checkName('workflow', name);
  const code = typeof options === 'function' ? options : fn;
  if (typeof code !== 'function')
    throw new ConfigError(`workflow ${name} has no function: workflow('${name}', async (run, input) => …)`);
  if (typeof options !== 'function') checkOptions(() => `workflow ${name}`, options, OPTIONS);
  return new Workflow(name, typeof options === 'function' ? {} : options, code);
}

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
