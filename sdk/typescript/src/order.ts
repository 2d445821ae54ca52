// The order of results: the code gets them one at a time, as the server recorded them.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { type Call, How, State, compare } from './call.js';
import { cancelNow } from './history.js';
import type { Op } from './outbox.js';
import { type ChildState, ChildrenCall } from './waits.js';

/** A result that waits to be handed over; one without a call is the cancellation. */
export interface Result {
  key: number;
  sub: number;
  live: boolean;
  call: Call | undefined;
}

function before(a: Result, b: Result): number {
  return a.key - b.key || a.sub - b.sub || (a.call && b.call ? compare(a.call, b.call) : 0);
}

export function insert(act: Activation, r: Result): void {
  let at = act.results.length;
  while (at > 0 && before(r, act.results[at - 1] as Result) < 0) at--;
  act.results.splice(at, 0, r);
}

function endCall(act: Activation, call: Call, how: How): void {
  if (call.outcome !== How.REPORTED || how === How.CANCELLED) call.outcome = how;
  call.state = State.OVER;
  call.running = false;
  call.unpark();
  call.setWorking(false);
  call.endedAt = act.current;
  act.open.delete(call);
  const use = act.names.get(call.name);
  if (use) use.inFlight = false;
}

/** Gives the code the result of a call. */
export function hand(act: Activation, call: Call, how: How): void {
  if (call.state === State.OVER) return;
  endCall(act, call, how);
  if (call.kind === v1.StepKind.SIGNAL && how !== How.CANCELLED) act.unreceived.delete(call.name);
  act.resumes();
  call.settle();
}

/** Queues the result of a call in its place. */
export function queue(act: Activation, call: Call, key: number, live: boolean): void {
  if (call.state === State.OVER || call.state === State.QUEUED) return;
  call.state = State.QUEUED;
  call.setWorking(false);
  // Of children whose ends one answer told, each has a place of its own.
  const sub = call instanceof ChildrenCall ? Math.max(1, ...call.children.map((c) => c.step?.settled ?? 0)) : 1;
  insert(act, { key, sub, live, call });
  act.schedule();
}

/** Queues the result that an operation recorded. */
export function report(act: Activation, call: Call, op: Op): void {
  call.outcome = How.REPORTED;
  queue(act, call, act.recorded + op.index, true);
}

/** Hands over the next result; false if there is none. */
export function handNext(act: Activation): boolean {
  const ending = act.endings.shift();
  if (ending) {
    hand(act, ending, How.CANCELLED);
    return true;
  }
  if (!deliverable(act)) return false;
  const { key, call } = act.results.shift() as Result;
  if (!call) {
    act.current = act.cancelKey = key;
    cancelNow(act);
  } else if (call.state !== State.OVER) {
    act.current = key;
    hand(act, call, How.RECORDED);
  }
  return true;
}

/** Whether a result can be handed over now. */
export function deliverable(act: Activation): boolean {
  const [first] = act.results;
  if (!first?.live) return first !== undefined;
  if ((act.owing > 0 && act.held.length > 0) || act.worker.options.alwaysSuspend) return false;
  if (act.again > 0) {
    const [oldest] = act.ops.keys();
    if (oldest !== undefined && oldest <= act.again) return false; // the server may have recorded these in another order
    act.again = 0;
    for (const r of act.results) {
      if (!r.live) continue;
      const { call } = r;
      r.key = call instanceof ChildrenCall ? Math.max(...call.children.map((c) => c.place)) : placeOf(act, r.key);
    }
    act.results.sort(before);
  }
  if (act.asking > 0) {
    const { key } = act.results[0] ?? first;
    for (const op of act.ops.values()) {
      if (act.recorded + op.index >= key) return true;
      if (op.asks) return false;
    }
  }
  return true;
}

/** Queues the result of a wait for children if all have ended; false if not. */
export function childrenKnown(act: Activation, call: ChildrenCall): boolean {
  if (call.children.some((c) => !c.step)) return false;
  const key = Math.max(0, ...call.children.map((c) => c.key));
  const live = call.children.some((c) => c.live);
  if (key === 0) hand(act, call, How.RECORDED);
  else queue(act, call, key, live);
  return true;
}

/** Whether all children had ended when the cancellation took effect; in a replay later ends may be known earlier. */
export function knownAtCancel(act: Activation, call: ChildrenCall): boolean {
  return call.children.every((c) => c.step !== undefined && c.place <= placeOf(act, act.cancelKey));
}

/** Returns where the server has recorded the result of a key, as far as it is known. */
export function placeOf(act: Activation, key: number): number {
  return act.places.get(key) ?? key;
}

/** Takes the steps of children that have ended; false if there are none. */
export function childrenEnded(
  act: Activation,
  steps: readonly v1.Step[],
  asked: readonly ChildState[],
  op: Op,
): boolean {
  const byName = new Map(steps.map((s) => [s.name, s]));
  for (const c of asked) {
    const step = byName.get(c.name);
    if (step && !c.step) c.told(act, act.recorded + op.index, step);
  }
  for (const call of [...act.open]) {
    if (call instanceof ChildrenCall && call.state === State.ACTIVE && childrenKnown(act, call))
      call.outcome = How.REPORTED;
  }
  return byName.size > 0;
}
