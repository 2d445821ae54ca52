// Errors of the Kagzi server as the runtime knows them.
import { DecodeError, ServerError } from '@kagzi/sdk';
import { ThrottleError, WorkflowWorldError } from '@workflow/errors';

const STATUS: Record<string, number> = {
  NOT_FOUND: 404,
  INVALID_ARGUMENT: 400,
  PRECONDITION_FAILED: 409,
  CONFLICT: 409,
  UNAUTHORIZED: 401,
  RESOURCE_EXHAUSTED: 413,
};

/** Returns an error that the runtime can judge: those with a status from 500 on are worth another attempt. */
export function translated(e: unknown): unknown {
  // A value that is larger than a payload, or cannot be read with the codec of this world.
  if (e instanceof DecodeError) return new WorkflowWorldError(e.message, { status: 413, cause: e });
  if (!(e instanceof ServerError)) return e;
  if (e.code === 'RESOURCE_EXHAUSTED' && e.metadata['retry_after']) return new ThrottleError(e.message);
  return new WorkflowWorldError(e.message, { status: STATUS[e.code] ?? 503, cause: e });
}

/** Returns a function whose errors are translated. */
export function told<A extends unknown[], R>(fn: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
  return async (...args) => {
    try {
      return await fn(...args);
    } catch (e) {
      throw translated(e);
    }
  };
}
