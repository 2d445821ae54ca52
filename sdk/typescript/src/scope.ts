// Which run, or which attempt of a step, the code that runs now belongs to. It serves the log, unhandled rejections, calls
// of the SDK within steps, and the checks of development; it decides nothing that is recorded.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Activation } from './activation.js';
import type { Attempt } from './step.js';

export const scope = new AsyncLocalStorage<Activation | Attempt | undefined>();

Object.defineProperty(globalThis, Symbol.for('kagzi.whoseCode'), {
  configurable: true,
  value: (): string => {
    const at = scope.getStore();
    return at && 'task' in at ? at.task.runId : '';
  },
});

/** An expression for the inspector: the id of the run whose workflow code runs, or an empty text. */
export const WHOSE_CODE = `globalThis[Symbol.for('kagzi.whoseCode')]?.() ?? ''`;
