// Cancellation: it is recorded once the code owes nothing, and takes effect when that record is handed over.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { type Call, State, compare } from './call.js';
import { KagziError } from './errors.js';
import { completeOwn, failNow } from './history.js';
import * as json from './json.js';
import { CANCEL_NAME } from './names.js';
import { insert, report } from './order.js';
import { StepCall } from './step.js';

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
