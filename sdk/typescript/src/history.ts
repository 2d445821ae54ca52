// The recorded history of a run, and what is recorded beside the calls of its code.
import { createHash, randomBytes } from 'node:crypto';
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { type Branch, type NameUse, claim } from './branch.js';
import type { Call } from './call.js';
import { readCancel } from './cancel.js';
import { type Schema, decode, encode } from './codec.js';
import { checkName, wireTime } from './convert.js';
import { DecodeError } from './errors.js';
import { CANCEL_NAME, OWN, PATCHED, VERDICT } from './names.js';
import type { Op } from './op.js';

/** Returns a recorded result; one that cannot be read fails the run. */
export function readRecord<T>(act: Activation, name: string, p: v1.Payload | undefined, schema?: Schema<T>): T {
  try {
    return decode(act.codec, p, act.payloadInfo('step', name), `recorded result of step ${name}`, schema);
  } catch (e) {
    act.unreadable = name;
    throw act.reject(e instanceof DecodeError ? unreadable(e) : e);
  }
}

/** Marks an error as that of a recorded value that cannot be read. */
export function unreadable(e: DecodeError): DecodeError {
  e.kind = 'unreadable';
  return e;
}

/** Records the outcome of a call that its own record does not show. */
export function judge(act: Activation, call: Call, d: v1.ErrorDetail): void {
  act.verdicts.set(call.name, d);
  act.verdictCount++;
  const stepName = act.verdictCount === 1 ? VERDICT : `${VERDICT}:${act.verdictCount}`;
  failNow(act, stepName, call, d);
}

/** Records a step of a call as failed for good. */
export function failNow(
  act: Activation,
  stepName: string,
  call: Call,
  error: v1.ErrorDetail,
  answer?: Op['answer'],
): void {
  const startedAt = wireTime(act.now());
  act.send('failStep', { stepName, error, startedAt, hold: true, branch: call.branch.path }, answer);
}

/** Records a step of the SDK's own. */
export function completeOwn(act: Activation, stepName: string, branch: string, output: v1.Payload): Op {
  return act.send('completeStep', { stepName, output, startedAt: wireTime(act.now()), branch });
}

/** Returns a value that is computed in place and recorded, also during a cancellation. */
export function record<T>(act: Activation, branch: Branch, written: string, value: () => T): T {
  if (act.quitted || act.closing) return value();
  let name: string;
  let recorded: v1.Step | undefined;
  try {
    [name, recorded] = claim(
      act,
      branch,
      branch.path ? `${written}/${branch.path}` : written,
      v1.StepKind.FUNCTION,
      '',
    );
  } catch (e) {
    throw act.reject(e);
  }
  (act.names.get(name) as NameUse).inFlight = false;
  if (recorded?.status === v1.StepStatus.COMPLETED) {
    act.release();
    return readRecord<T>(act, name, recorded.output);
  }
  if (!recorded) branch.writeLines();
  const made = value();
  completeOwn(act, name, branch.path, encode(act.codec, made, act.payloadInfo('step', name), `value of ${name}`));
  act.release();
  return made;
}

/** Returns whether the run takes the new way at a change of its code. */
export function patched(act: Activation, branch: Branch, patch: string): boolean {
  try {
    checkName('patch', patch);
  } catch (e) {
    throw act.reject(e);
  }
  return record(act, branch, PATCHED + patch, () => act.uncalled.size === act.ownLeft);
}

/** Draws random bytes for a branch: SHA-256 of its recorded seed, the use and a counter. */
export function draw(act: Activation, branch: Branch, size: number): Buffer {
  branch.draw ??= generator(
    Buffer.from(
      record(act, branch, `${OWN}seed`, () => randomBytes(64).toString('base64')),
      'base64',
    ),
  );
  return branch.draw(size);
}

function generator(seed: Buffer): (size: number) => Buffer {
  let count = 0;
  let left = Buffer.alloc(0);
  return (size) => {
    while (left.length < size) {
      const block = createHash('sha256').update(seed).update(String(count++)).digest();
      left = Buffer.concat([left, block]);
    }
    const drawn = left.subarray(0, size);
    left = left.subarray(size);
    return drawn;
  };
}

/** Takes a row of the history. */
export function remember(act: Activation, s: v1.Step): void {
  act.recorded = act.settled = Math.max(act.recorded, s.settled);
  const { name } = s;
  if (name === VERDICT || name.startsWith(`${VERDICT}:`)) {
    act.verdictCount++;
    const about = s.error?.metadata['step'];
    if (s.status === v1.StepStatus.FAILED && s.error && about !== undefined) act.verdicts.set(about, s.error);
    return;
  }
  if (name === CANCEL_NAME) return readCancel(act, s);
  act.history.set(name, s);
  if (name.startsWith(OWN)) {
    if (!isTruePatch(act, s)) return;
    act.ownLeft++;
  } else if (isReceived(s)) act.unreceived.add(name);
  const owes = act.worker.session.keepsOrder && s.begunIn >= act.task.owedFrom;
  act.uncalled.set(name, owes);
  if (owes) act.owing++;
}

/** Whether a row is that of a signal that the code has not got yet. */
function isReceived(s: v1.Step): boolean {
  const told = s.kind === v1.StepKind.SIGNAL && s.status === v1.StepStatus.COMPLETED && s.settled > 0;
  return told && !s.overriddenBy && !s.signalTimedOut;
}

function isTruePatch(act: Activation, s: v1.Step): boolean {
  if (!s.name.startsWith(PATCHED)) return false;
  const rest = s.name.slice(PATCHED.length);
  for (const removed of act.worker.options.removedPatches) {
    const after = rest.slice(removed.length);
    if (rest.startsWith(removed) && (after === '' || after.startsWith('/') || after.startsWith(':'))) return false;
  }
  try {
    return decode(act.codec, s.output, act.payloadInfo('step', s.name), s.name) === true;
  } catch {
    return false;
  }
}
