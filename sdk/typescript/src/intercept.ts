// What is called around the code of the application: spans and interceptors. None turns a failure into a success.
import { KagziError, Failed, StepError } from './errors.js';
import type { Interceptor, RunAbout } from './options.js';
import type { Attempt, StepFunction } from './step.js';
import { createRequire } from 'node:module';
import type * as Api from '@opentelemetry/api';
import type * as v1 from './v1/index.js';

export function aroundRun<T>(
  interceptors: readonly Interceptor[],
  about: RunAbout,
  code: () => Promise<T> | T,
): Promise<T> {
  const wraps = interceptors.flatMap((one): Wrap<RunAbout>[] => (one.run ? [one.run.bind(one)] : []));
  return within(wraps, about, 'the workflow function', code);
}

/** Calls the code of an attempt of a step within its span and the interceptors. */
export function aroundStep<T>(interceptors: readonly Interceptor[], attempt: Attempt, fn: StepFunction<T>): Promise<T> {
  const wraps = interceptors.flatMap((one): Wrap<Attempt>[] => (one.step ? [one.step.bind(one)] : []));
  const call = (): Promise<T> => within(wraps, attempt, `step ${attempt.step}`, () => fn(attempt));
  const { span } = attempt.call.act;
  return span ? inSpan(span, attempt.step, attempt.attempt, call) : call();
}

type Wrap<A> = <T>(about: A, next: () => Promise<T>) => Promise<T>;

async function within<A, T>(wraps: readonly Wrap<A>[], about: A, what: string, code: () => Promise<T> | T): Promise<T> {
  if (wraps.length === 0) return await code();
  let failure: { error: unknown } | undefined;
  let call = async (): Promise<T> => {
    try {
      return await code();
    } catch (error) {
      failure = { error };
      throw error;
    }
  };
  for (const one of [...wraps].reverse()) {
    const next = call;
    call = () => one(about, next);
  }
  const got = await call();
  if (failure) throw new KagziError(`an interceptor hides the failure of ${what}`, { cause: failure.error });
  return got;
}

/** A span of the application's tracing. The types of this package do not name those of OpenTelemetry, which is optional. */
export interface Span {
  setAttribute(name: string, value: string): unknown;
  end(): void;
}

let api: typeof Api | undefined;
try {
  api = createRequire(import.meta.url)('@opentelemetry/api') as typeof Api;
} catch {
  // the application does not trace
}

const NAME = 'kagzi';
const PARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Returns the current trace context in its W3C form; empty if there is none. */
export function traceparent(): string {
  const found = api?.trace.getSpanContext(api.context.active());
  if (!api || !found || !api.isSpanContextValid(found)) return '';
  return `00-${found.traceId}-${found.spanId}-${found.traceFlags.toString(16).padStart(2, '0')}`;
}

/** Starts the span of one activation of a run, a child of the span that started the run; undefined without tracing. */
export function startSpan(task: v1.Task): Span | undefined {
  if (!api) return undefined;
  let parent = api.ROOT_CONTEXT;
  const [, traceId, spanId, flags] = PARENT.exec(task.traceparent) ?? [];
  if (traceId && spanId && flags) {
    parent = api.trace.setSpanContext(parent, { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true });
  }
  const attributes = {
    'kagzi.run_id': task.runId,
    'kagzi.workflow_type': task.workflowType,
    'kagzi.namespace': task.namespace,
    'kagzi.queue': task.taskQueue,
    'kagzi.attempt': task.attempt,
  };
  const kind = api.SpanKind.CONSUMER;
  const span = api.trace.getTracer(NAME).startSpan(`workflow ${task.workflowType}`, { kind, attributes }, parent);
  return span.isRecording() ? span : undefined;
}

/** Calls the code of an attempt of a step: its span is the current one. It has the type of an error, not its text. */
export function inSpan<T>(parent: Span, name: string, attempt: number, code: () => Promise<T>): Promise<T> {
  const { trace, context, ROOT_CONTEXT, SpanStatusCode } = api as typeof Api;
  const attributes = { 'kagzi.step': name, 'kagzi.attempt': attempt };
  const below = trace.setSpan(ROOT_CONTEXT, parent as Api.Span);
  const span = trace.getTracer(NAME).startSpan(`step ${name}`, { attributes }, below);
  return context.with(trace.setSpan(context.active(), span), async () => {
    try {
      return await code();
    } catch (e) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: typeOf(e) });
      throw e;
    } finally {
      span.end();
    }
  });
}

function typeOf(e: unknown): string {
  if ((e instanceof Failed || e instanceof StepError) && e.type) return e.type;
  if (typeof e === 'object' && e !== null && 'kagziType' in e) return String(e.kagziType);
  return 'error';
}
