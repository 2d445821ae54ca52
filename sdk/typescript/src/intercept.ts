// What is called around the code of the application: spans and interceptors. None turns a failure into a success.
import { KagziError } from './errors.js';
import type { Interceptor, RunAbout } from './options.js';
import type { Attempt, StepFunction } from './step.js';
import * as trace from './trace.js';

/** Calls a workflow function within the interceptors. */
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
  return span ? trace.step(span, attempt.step, attempt.attempt, call) : call();
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
