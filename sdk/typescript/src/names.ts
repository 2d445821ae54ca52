// Reserved names, and words for the kinds of calls.
import { StepKind } from './v1/kagzi/v1/workflow.js';

/** The beginning of the names of the SDK's own records. */
export const OWN = 'kagzi:';
export const CANCEL_NAME = `${OWN}cancelled`;
export const PATCHED = `${OWN}patched:`;
/** The record of an outcome that the record of its own call does not show. */
export const VERDICT = `${OWN}ended`;

const KIND_NAMES: Partial<Record<StepKind, string>> = {
  [StepKind.FUNCTION]: 'step',
  [StepKind.SLEEP]: 'sleep',
  [StepKind.SIGNAL]: 'wait for a signal',
  [StepKind.CHILD_WORKFLOW]: 'child run',
};

/** Returns what a kind of step is called in messages. */
export function kindName(kind: StepKind): string {
  return KIND_NAMES[kind] ?? 'step of unknown kind';
}
