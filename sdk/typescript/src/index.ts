/** Durable workflows on a Kagzi server. The guide is README.md of this package. */
export {
  type Codec,
  type Payload,
  type PayloadInfo,
  type Schema,
  AESCodec,
  type AESCodecOptions,
  MAX_PAYLOAD,
} from './codec.js';
export type { Duration } from './convert.js';
export {
  Cancelled,
  type Code,
  ConfigError,
  ContinueAsNew,
  DecodeError,
  Failed,
  type FailedOptions,
  KagziError,
  Misuse,
  NonRetryable,
  RunError,
  type RunErrorFacts,
  ServerError,
  StepError,
  TimedOut,
} from './errors.js';
export { type Fields, type Level, type Log, textLog } from './log.js';
export type { ChildOptions, Retry, StartOptions } from './options.js';
export type { ConnectOptions, TLS } from './profile.js';
export { Child, type FirstNamed, type FirstOf, Run, type Waitable } from './run.js';
export type { StepContext, StepFunction } from './step.js';
export type { Interceptor, RunAbout, WorkerOptions } from './options.js';
export { Divergence, type ReplayOptions, replayCapsule } from './replay.js';
export { Worker, serve } from './worker.js';
export type { RunChildOptions, RunInfo, SignalOptions, StepOptions } from './workflow.js';
export { Workflow, type WorkflowFunction, type WorkflowOptions, workflow } from './workflow.js';
export { Client, type ClientInterceptor, type ClientOptions, type ListFilters } from './client.js';
export { type RunDetails, RunHandle, type SignalDetails, type Status, type StepDetails } from './handle.js';
export { Schedule, type ScheduleChanges, type ScheduleDetails, type ScheduleOptions } from './schedule.js';
