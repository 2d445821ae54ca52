// How a run gives its worker back: parked, when nothing can go on by itself, or released.
import type * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { mayKeep, suspend } from './cache.js';
import { PARK_SETTLE, State, compare } from './call.js';
import { sendFailure } from './ending.js';
import { Coded, detailOf } from './errors.js';
import type { Op } from './op.js';
import { childrenEnded } from './order.js';
import { type ChildState, ChildrenCall, ServerWait, askChildren } from './waits.js';

/** Milliseconds before a run that did nothing since its claim is parked. */
const PARK_AFTER_NOTHING = 1000;

/** Milliseconds of rest before code that waits for no call counts as stuck: a foreign promise may still settle. */
const DEADLOCK_AFTER = 1000;

/** Parks the run, because nothing can go on by itself. */
export function idle(act: Activation): void {
  if (act.quitted || act.closing || act.endings.length > 0 || act.held.length > 0 || act.starting.length > 0) return;
  if (act.results.length > 0) {
    if (act.worker.options.alwaysSuspend && act.ops.size === 0) {
      act.closing = true;
      sendRelease(act, 'suspended');
      act.quit('suspended');
    }
    return;
  }
  if (act.asking > act.questions) return;
  if (act.parked.size === 0) {
    if (act.open.size === 0) stuck(act);
    return;
  }
  const delay = parkDelay(act);
  if (delay <= 0) return park(act);
  const { generation } = act;
  act.after(delay, () => {
    if (generation === act.generation && !act.quitted && !act.closing && act.results.length === 0) park(act);
  });
}

function parkDelay(act: Activation): number {
  const due = [...act.parked].filter((c) => c.due > 0).map((c) => c.due);
  if (due.length > 0 && act.issued === 0) return PARK_AFTER_NOTHING;
  return due.length > 0 && Math.min(...due) - act.now() <= PARK_SETTLE ? PARK_SETTLE : 0;
}

function park(act: Activation): void {
  if (act.questions > 0 || act.working > 0 || act.starting.length > 0) return;
  const waits = [...act.parked].filter((c): c is ServerWait<unknown> => c instanceof ServerWait && !c.asked);
  if (waits.length > 0) return askParked(act, waits);
  act.closing = true;
  sendRelease(act, 'suspended', true);
  if (!mayKeep(act)) act.quit('suspended');
}

/** Asks about parked calls, because what happened already does not wake the run. Single children share one question. */
function askParked(act: Activation, calls: ServerWait<unknown>[]): void {
  const children = new Map<string, ChildState>();
  const each: ServerWait<unknown>[] = [];
  for (const call of calls.sort(compare)) {
    const [child, ...more] = call instanceof ChildrenCall ? call.children : [];
    if (child && more.length === 0) {
      each.push(call);
      if (!children.has(child.runId)) children.set(child.runId, child);
    } else {
      act.questions++;
      call.ask(true, (r, op) => answered(act, [call], call.answered(r, op)));
    }
  }
  if (children.size === 0) return;
  const all = [...children.values()];
  act.questions++;
  askChildren(act, all, true, true, (r: v1.SessionResponse, op: Op) =>
    answered(act, each, childrenEnded(act, r.awaitedChildren?.steps ?? [], all, op)),
  );
}

function answered(act: Activation, calls: ServerWait<unknown>[], got: boolean): void {
  act.questions--;
  for (const call of calls) {
    call.known = performance.now();
    call.asked ||= !got;
    if (call.state !== State.ACTIVE) call.unpark();
  }
}

/** Fails a run whose code waits, but for no call, if that lasts. */
function stuck(act: Activation): void {
  const { generation, calling } = act;
  const fail = (): void => {
    if (generation !== act.generation || calling !== act.calling || act.quitted || act.closing || act.mainOver) return;
    const line = act.worker.dev?.foreignAwait(act);
    const where = line ? `, at ${line}` : '';
    act.closing = true;
    const text = `every branch of the run waits for another one, or for a promise that is not the SDK's${where}, so that none goes on; do what such a promise stands for in a step`;
    sendFailure(act, detailOf(new Coded(text, 'deadlock')));
    act.quit('finished');
  };
  act.after(DEADLOCK_AFTER, fail);
}

/** Releases the run. */
export function sendRelease(act: Activation, cause: string, parks = false, divergence?: v1.Divergence): void {
  act.send('releaseTask', { park: parks, divergence }, () => (parks ? suspend(act) : act.over(cause)));
}
