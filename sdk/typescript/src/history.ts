// The recorded history of a run, and what is recorded beside the calls of its code.
//
// A cancellation is recorded once the code owes nothing, and takes effect when that record is handed over.
import { createHash, randomBytes } from 'node:crypto';
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { type Branch, type NameUse, claim, CANCEL_NAME, OWN, PATCHED, VERDICT } from './branch.js';
import { type Call, State, compare } from './call.js';
import { type Schema, decode, encode } from './codec.js';
import { checkName, wireTime } from './convert.js';
import { DecodeError, KagziError } from './errors.js';
import type { Answer, Op } from './outbox.js';
import * as json from './json.js';
import { insert, report } from './order.js';
import { StepCall } from './step.js';

/** Calls what reads a recorded result; one that cannot be read fails the run. */
export function reading<T>(act: Activation, name: string, read: () => T): T {
  try {
    return read();
  } catch (e) {
    act.unreadable = name;
    throw act.reject(e instanceof DecodeError ? unreadable(e) : e);
  }
}

export function readRecord<T>(act: Activation, name: string, p: v1.Payload | undefined, schema?: Schema<T>): T {
  const info = act.payloadInfo('step', name);
  return reading(act, name, () => decode(act.codec, p, info, `recorded result of step ${name}`, schema));
}

/** Marks an error as that of a recorded value that cannot be read. */
export function unreadable(e: DecodeError): DecodeError {
  e.kind = 'unreadable';
  return e;
}

/** Records a step of a call as failed for good. */
export function failNow(act: Activation, stepName: string, call: Call, error: v1.ErrorDetail, answer?: Answer): void {
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
    const local = branch.path ? `${written}/${branch.path}` : written;
    [name, recorded] = claim(act, branch, local, v1.StepKind.FUNCTION, '');
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
  const seed = (): string => record(act, branch, `${OWN}seed`, () => randomBytes(64).toString('base64'));
  branch.draw ??= generator(Buffer.from(seed(), 'base64'));
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

/** Records that the run is being cancelled, and when its grace period ends; true the first time. */
export function askCancel(act: Activation, until: number): boolean {
  const first = !act.cancelAsked;
  act.cancelAsked = true;
  act.graceUntil = until;
  tryCancel(act);
  act.schedule();
  return first;
}

/** Records the cancellation, if it was asked for and the code owes nothing. */
export function tryCancel(act: Activation): void {
  if (!act.cancelAsked || act.cancelling || act.owing > 0 || act.quitted || act.closing) return;
  if (act.afterLeaving(() => tryCancel(act))) return;
  act.cancelling = true;
  const running = [...act.open].filter((c) => c.running && !c.clean).map((c) => c.name);
  act.atWork = new Set(running);
  const data = Buffer.from(JSON.stringify(running.length > 0 ? { running: running.sort() } : {}));
  const op = completeOwn(act, CANCEL_NAME, '', { data, metadata: { 'content-type': 'application/json' } });
  insert(act, { key: act.recorded + op.index, sub: 0, live: true, call: undefined });
}

/** Takes the record of a cancellation. */
export function readCancel(act: Activation, s: v1.Step): void {
  try {
    const { running } = json.decode(s.output?.data ?? new Uint8Array()) as { running?: string[] };
    act.atWork = new Set(running);
  } catch {
    act.atWork = new Set(); // no step counts as running
  }
  act.cancelAsked = act.cancelling = true;
  insert(act, { key: s.settled, sub: 0, live: false, call: undefined });
}

/** Lets the cancellation take effect: it ends every sleep and wait, and every step whose code does not run. */
export function cancelNow(act: Activation): void {
  act.cancelled = true;
  for (const call of act.open) {
    if (call.clean || call.inCode || call.state === State.OVER) continue;
    if (call instanceof StepCall && (call.running || call.state === State.QUEUED)) {
      call.current?.end(new KagziError('the run is being cancelled'));
    } else if (act.atWork.has(call.name) && call.kind === v1.StepKind.FUNCTION) {
      failLost(act, call);
    } else {
      act.endings.push(call);
    }
  }
  act.endings.sort(compare);
  act.held = act.held.filter((c) => c.clean);
  act.release();
  act.startBodies();
  act.schedule();
}

/** Fails a step whose code ran when the cancellation was recorded, on a worker that has been lost since. */
function failLost(act: Activation, call: Call): void {
  if (call.state === State.HELD) act.held = act.held.filter((c) => c !== call);
  call.unpark();
  call.state = State.ACTIVE;
  call.failing = true;
  call.setWorking(true);
  act.starting = act.starting.filter((c) => c !== call);
  call.failure = v1.ErrorDetail.create({
    code: v1.ErrorCode.CANCELLED,
    nonRetryable: true,
    type: 'cancelled',
    message: 'the run was cancelled while the step ran on a worker that is lost',
  });
  failNow(act, call.name, call, call.failure, (_, op) => report(act, call, op));
}
