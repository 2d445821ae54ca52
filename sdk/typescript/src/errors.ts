// Errors of the SDK, and their conversion to and from what is recorded.
import type { ServiceError } from '@grpc/grpc-js';
import { status as Status } from '@grpc/grpc-js';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import * as v1 from './v1/index.js';
import { userStack } from './lines.js';
import { MAX_ERROR_TEXT, MAX_ERROR_TYPE, type Duration, cleanText, millis } from './convert.js';

/** Base of all errors of this package. */
export class KagziError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** An option, an environment variable or the profile is invalid. The text names it. */
export class ConfigError extends KagziError {}

/** A value has no JSON form, or a payload cannot be read or does not fit its schema. */
export class DecodeError extends KagziError {
  /** @internal */
  kind: '' | 'unreadable' = '';
}

/** A code of an error: of a refusal by the server, or of what ended a step or run. */
export type Code = keyof typeof v1.ErrorCode | '';

/** A refusal by the server, or a failure to reach it. */
export class ServerError extends KagziError {
  constructor(
    /** What is wrong; it names the field. */
    readonly detail: string,
    /** Such as `NOT_FOUND`, `INVALID_ARGUMENT`, `CONFLICT`, `UNAVAILABLE`, `UNAUTHORIZED`. */
    readonly code: Code,
    /** What the error is about: `run`, `worker`, `schedule`, `namespace`. */
    readonly subject = '',
    readonly subjectId = '',
    /** Further facts, such as `field`, `status` of the run and `continued_as_run_id`. */
    readonly metadata: Readonly<Record<string, string>> = {},
    /** The gRPC status code. */
    readonly status: Status = Status.UNKNOWN,
  ) {
    super(code ? `${code}: ${detail}` : detail);
  }
}

/** Options of an error of the application. */
export interface FailedOptions extends ErrorOptions {
  /** Its type, such as `card_declined`. Retry policies and callers match errors by it. */
  type?: string;
  /** False if no further attempt can succeed (true). */
  retryable?: boolean;
  /** Delay before the next attempt, instead of the policy's. It does not allow more attempts. */
  retryAfter?: Duration;
}

/** An error of the application, for steps and workflows. Other errors work as well. */
export class Failed extends KagziError {
  readonly type: string;
  readonly retryable: boolean;
  readonly retryAfter: Duration | undefined;

  constructor(message: string, options: FailedOptions = {}) {
    super(message, options);
    this.type = options.type ?? '';
    this.retryable = options.retryable ?? true;
    this.retryAfter = options.retryAfter;
  }
}

/** An error that is final: the step, or the run, fails without another attempt. */
export class NonRetryable extends Failed {
  constructor(message: string, options: Omit<FailedOptions, 'retryable' | 'retryAfter'> = {}) {
    super(message, { ...options, retryable: false });
  }
}

/** A step failed for good. It has only what is recorded, so every replay throws the same. */
export class StepError extends KagziError {
  constructor(
    /** Name of the step. */
    readonly step: string,
    /** Its text, without the step's name. */
    readonly detail: string,
    /** Type of the error: that of `Failed`, or the property `kagziType` of another error; else empty. */
    readonly type = '',
    /** `TIMEOUT`, `CANCELLED`, the code of a refusal, or empty for errors of the step's code. */
    readonly code: Code = '',
    /** Number of attempts. */
    readonly attempts = 0,
    readonly nonRetryable = false,
  ) {
    super(detail.startsWith(`step ${step} `) ? detail : `step ${step}: ${detail}`);
  }
}

/** A step timed out, or the limit of a wait has passed. */
export class TimedOut extends StepError {}

/** The run is being cancelled, which ended or prevented the call. `run.cleanup` allows calls again. */
export class Cancelled extends StepError {}

/** What is known of a run that ended without a result. */
export interface RunErrorFacts {
  /** Type of the error, as in StepError. */
  type?: string;
  /** What ended the run, such as `TIMEOUT`; empty for errors of its code. */
  code?: Code;
  stack?: string;
  /** Of a child: the step under which the parent started it. */
  step?: string;
  workflowType?: string;
  externalId?: string;
  /** Of a child: it was cancelled because its parent is being cancelled. */
  withParent?: boolean;
}

/** A run ended without a result. */
export class RunError extends KagziError {
  readonly type: string;
  readonly code: Code;
  /** The stack of the code's error, if it is known. */
  readonly remoteStack: string;
  readonly step: string;
  readonly workflowType: string;
  readonly externalId: string;
  readonly withParent: boolean;

  constructor(
    readonly runId: string,
    /** `FAILED`, `CANCELLED`, `TIMED_OUT` or `TERMINATED`. */
    readonly status: string,
    /** Text of the error. */
    readonly detail: string,
    facts: RunErrorFacts = {},
  ) {
    const external = facts.externalId ? `external id ${facts.externalId}, ` : '';
    const text = facts.step
      ? `child ${facts.step} of type ${facts.workflowType} (${external}run ${runId})`
      : `run ${runId}`;
    super(`${text} ${status.toLowerCase().replaceAll('_', ' ')}${detail ? `: ${detail}` : ''}`);
    this.type = facts.type ?? '';
    this.code = facts.code ?? '';
    this.remoteStack = facts.stack ?? '';
    this.step = facts.step ?? '';
    this.workflowType = facts.workflowType ?? '';
    this.externalId = facts.externalId ?? '';
    this.withParent = facts.withParent ?? false;
  }
}

/** Workflow code did what only code of steps may do. The run fails; the text says what to write instead. */
export class Misuse extends KagziError {
  constructor(
    message: string,
    /** @internal */
    readonly kind: '' | 'within_step' = '',
  ) {
    super(message);
  }
}

/** Ends a run that continues as new; the workflow function must let it pass. */
export class ContinueAsNew extends KagziError {
  constructor(
    /** @internal */
    readonly input: v1.Payload,
  ) {
    super('continueAsNew has no effect here: the workflow function must let it pass');
  }
}

/** An error that the SDK itself records. */
export class Coded extends KagziError {
  constructor(
    text: string,
    readonly kind: string,
    readonly code: Code = '',
    readonly final = true,
  ) {
    super(text);
  }
}

/** Returns the name of an error code; empty for an error of the application's own code. */
export function codeName(code: v1.ErrorCode): Code {
  return code === v1.ErrorCode.UNSPECIFIED ? '' : ((v1.ErrorCode[code] ?? `CODE_${code}`) as Code);
}

/** Returns the number of an error code, 0 for an unknown name. */
function codeNumber(name: Code): v1.ErrorCode {
  return name === '' ? v1.ErrorCode.UNSPECIFIED : (v1.ErrorCode[name] ?? v1.ErrorCode.UNSPECIFIED);
}

export function detailError(d: v1.ErrorDetail, status: Status = Status.UNKNOWN): ServerError {
  return new ServerError(d.message, codeName(d.code), d.subject, d.subjectId, d.metadata, status);
}

const CODE_OF_STATUS: Partial<Record<number, Code>> = {
  [Status.NOT_FOUND]: 'NOT_FOUND',
  [Status.INVALID_ARGUMENT]: 'INVALID_ARGUMENT',
  [Status.OUT_OF_RANGE]: 'INVALID_ARGUMENT',
  [Status.FAILED_PRECONDITION]: 'PRECONDITION_FAILED',
  [Status.ALREADY_EXISTS]: 'CONFLICT',
  [Status.UNAUTHENTICATED]: 'UNAUTHORIZED',
  [Status.PERMISSION_DENIED]: 'UNAUTHORIZED',
  [Status.UNAVAILABLE]: 'UNAVAILABLE',
  [Status.DEADLINE_EXCEEDED]: 'TIMEOUT',
  [Status.CANCELLED]: 'CANCELLED',
  [Status.RESOURCE_EXHAUSTED]: 'RESOURCE_EXHAUSTED',
};

export function callError(e: ServiceError): ServerError {
  for (const value of e.metadata.get('grpc-status-details-bin')) {
    const detail = Buffer.isBuffer(value) ? errorDetail(value) : undefined;
    if (detail) return detailError(detail, e.code);
  }
  let text = e.details || e.message;
  if (e.code === Status.UNAVAILABLE) {
    text = `no answer from the server: ${text}; check that a server runs there (kagzi server), and the address`;
  } else if (e.code === Status.UNIMPLEMENTED) {
    text = `the server does not offer this: ${text}; it may be older than this program`;
  }
  return new ServerError(text, CODE_OF_STATUS[e.code] ?? 'INTERNAL', '', '', {}, e.code);
}

/** Finds the ErrorDetail among the details of a google.rpc.Status, whose field 3 is a list of google.protobuf.Any. */
function errorDetail(status: Uint8Array): v1.ErrorDetail | undefined {
  for (const [field, any] of fields(status)) {
    const parts = new Map(field === 3 ? fields(any) : []);
    const type = Buffer.from(parts.get(1) ?? []).toString();
    if (type.endsWith('kagzi.v1.ErrorDetail')) return v1.ErrorDetail.decode(parts.get(2) ?? new Uint8Array());
  }
  return undefined;
}

/** Yields the numbers and bytes of the fields of a message that have a length. */
function* fields(message: Uint8Array): Generator<[number, Uint8Array]> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (wire === WireType.LengthDelimited) yield [field, reader.bytes()];
    else reader.skip(wire);
  }
}

/** Converts anything that was thrown to the form in which it is recorded. */
export function detailOf(thrown: unknown): v1.ErrorDetail {
  const d = v1.ErrorDetail.create();
  try {
    if (!(thrown instanceof Error)) {
      d.message = cleanText(typeof thrown === 'string' ? thrown : `thrown: ${String(thrown)}`, MAX_ERROR_TEXT);
      d.type = 'panic'; // what no application throws on purpose
      d.stack = cleanText(new Error(d.message).stack ?? '', MAX_ERROR_TEXT);
      return d;
    }
    const own: unknown = 'kagziType' in thrown ? thrown.kagziType : undefined;
    d.message = cleanText(thrown.message || thrown.name, MAX_ERROR_TEXT);
    d.type = typeof own === 'string' ? cleanText(own, MAX_ERROR_TYPE) : '';
    Object.assign(d, described(thrown));
    const after = thrown instanceof Failed ? thrown.retryAfter : undefined;
    if (after !== undefined) d.retryAfterMs = Math.max(1, Math.round(millis(after, 'retryAfter')));
  } catch (bad) {
    d.message ||= cleanText(`an error whose text cannot be read: ${String(bad)}`, MAX_ERROR_TEXT);
  }
  return d;
}

/** Returns what an error says of itself beside its text. */
function described(e: Error): Partial<v1.ErrorDetail> {
  if (e instanceof Failed) return { type: cleanText(e.type, MAX_ERROR_TYPE), nonRetryable: !e.retryable };
  if (e instanceof StepError) {
    const code = e.code === 'CRASHED' ? v1.ErrorCode.UNSPECIFIED : codeNumber(e.code);
    return { type: e.type, nonRetryable: e.nonRetryable, code };
  }
  if (e instanceof RunError) return { type: e.type, code: codeNumber(e.code) };
  if (e instanceof ContinueAsNew) return { type: 'continue_as_new', nonRetryable: true };
  if (e instanceof DecodeError || e instanceof Misuse) return { type: e.kind, nonRetryable: true };
  if (e instanceof ConfigError) return { nonRetryable: true };
  if (e instanceof Coded) return { type: e.kind, code: codeNumber(e.code), nonRetryable: e.final };
  if (e instanceof KagziError || !e.stack) return {};
  return { stack: cleanText(userStack(e.stack), MAX_ERROR_TEXT) };
}

/** Returns the error of a step that has failed for good. */
export function stepError(step: string, d: v1.ErrorDetail, attempts: number): StepError {
  const code = codeName(d.code);
  const made = code === 'TIMEOUT' ? TimedOut : code === 'CANCELLED' ? Cancelled : StepError;
  return new made(step, d.message, d.type, code, attempts, d.nonRetryable);
}

/** Returns the error of a call that the cancellation ended; last is the failure of its last attempt. */
export function cancelledError(step: string, last?: v1.ErrorDetail, attempts = 0): Cancelled {
  const text = 'the run is being cancelled' + (last?.message ? `; last error: ${last.message}` : '');
  return new Cancelled(step, text, last?.type ?? '', 'CANCELLED', attempts, true);
}

const GONE: readonly Code[] = ['LEASE_LOST', 'NOT_FOUND', 'CANCELLED', 'UNAUTHORIZED'];

/** Whether a refusal means that the worker no longer holds the run. */
export function leaseGone(d: v1.ErrorDetail): boolean {
  return GONE.includes(codeName(d.code));
}

/** Whether a refusal leaves open if the operation took effect. */
export function repeatable(d: v1.ErrorDetail): boolean {
  if (d.code === v1.ErrorCode.RESOURCE_EXHAUSTED) return !d.nonRetryable; // a full disk passes, a limit does not
  return d.code === v1.ErrorCode.UNAVAILABLE || d.code === v1.ErrorCode.INTERNAL || d.code === v1.ErrorCode.TIMEOUT;
}
