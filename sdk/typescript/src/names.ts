// Reserved names, and words for the kinds of calls.
import * as v1 from './v1/index.js';

/** The beginning of the names of the SDK's own records. */
export const OWN = 'kagzi:';
export const CANCEL_NAME = `${OWN}cancelled`;
export const PATCHED = `${OWN}patched:`;
/** The record of an outcome that the record of its own call does not show. */
export const VERDICT = `${OWN}ended`;

const KIND_NAMES: Partial<Record<v1.StepKind, string>> = {
  [v1.StepKind.FUNCTION]: 'step',
  [v1.StepKind.SLEEP]: 'sleep',
  [v1.StepKind.SIGNAL]: 'wait for a signal',
  [v1.StepKind.CHILD_WORKFLOW]: 'child run',
};

/** Returns what a kind of step is called in messages. */
export function kindName(kind: v1.StepKind): string {
  return KIND_NAMES[kind] ?? 'step of unknown kind';
}
