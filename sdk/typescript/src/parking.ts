// How a run gives its worker back: parked, when nothing can go on by itself, or released.
//
// Parked runs are kept in memory. The task of one that comes back has only what happened meanwhile, and names the lease
// under which it was parked. If anything does not fit, the worker drops the code, reads the whole history and replays.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { PARK_SETTLE, State, compare, type Call } from './call.js';
import { sendFailure } from './ending.js';
import { Coded, detailOf } from './errors.js';
import type { Op } from './outbox.js';
import { childrenEnded, childrenKnown, placeOf, queue } from './order.js';
import { type ChildState, ChildrenCall, ServerWait, askChildren } from './waits.js';
import { tryCancel } from './history.js';
import { unix } from './convert.js';

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

export function sendRelease(act: Activation, cause: string, parks = false, divergence?: v1.Divergence): void {
  act.send('releaseTask', { park: parks, divergence }, () => (parks ? suspend(act) : act.over(cause)));
}

/** Bytes that a kept run counts beside its payloads. */
export const OVERHEAD = 16 << 10;
const KEEP_FOR = 600_000;

/** The parked runs that a worker keeps; of too many it drops those that were parked first. */
export class Cache {
  readonly runs = new Map<string, Activation>();
  #size = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly limit: number,
    private readonly limitBytes: number,
  ) {}

  take(runId: string): Activation | undefined {
    const act = this.runs.get(runId);
    if (act) {
      this.runs.delete(runId);
      this.#size -= act.size + OVERHEAD;
    }
    return act;
  }

  put(act: Activation): void {
    this.drop(act.task.runId);
    act.keepUntil = performance.now() + KEEP_FOR;
    this.runs.set(act.task.runId, act);
    this.#size += act.size + OVERHEAD;
    for (const runId of this.runs.keys()) {
      if (this.runs.size <= this.limit && this.#size <= this.limitBytes) break;
      this.drop(runId);
    }
    this.#watch();
  }

  drop(runId: string): void {
    this.take(runId)?.over('suspended');
  }

  clear(): void {
    for (const runId of [...this.runs.keys()]) this.drop(runId);
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #watch(): void {
    const [first] = this.runs.values();
    if (this.#timer || !first) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      for (const [runId, act] of this.runs) {
        if (act.keepUntil > performance.now()) break;
        this.drop(runId);
      }
      this.#watch();
    }, first.keepUntil - performance.now());
    this.#timer.unref();
  }
}

/** Whether the code may wait in memory: all that it did is recorded, and it owes nothing. */
export function mayKeep(act: Activation): boolean {
  const { worker } = act;
  const idle = act.held.length === 0 && act.results.length === 0 && act.endings.length === 0;
  const clean = act.afterwards.length === 0 && !act.refusals && !act.quitted && !act.ended && !act.mainOver;
  const keeps = worker.cache.limit > 0 && worker.session.resumesRuns && worker.session.keepsOrder && !worker.draining;
  return keeps && act.owing === 0 && act.bodiesRunning === 0 && idle && clean;
}

/** Ends the time for which this worker holds a run that is parked. Its code waits in memory, or is dropped. */
export function suspend(act: Activation): void {
  if (act.ops.size > 0 || !mayKeep(act)) return act.over('suspended');
  act.closing = act.away = true;
  act.notes.rest();
  for (const call of act.parked) {
    clearTimeout(call.timer);
    call.timer = undefined;
  }
  act.worker.forget(act, true);
}

/** Returns the sleep or wait for a signal that a step is the record of, if it has no result yet. */
function waiting(act: Activation, s: v1.Step): Call | undefined {
  for (const call of act.open) {
    const same = call.name === s.name && call.kind === s.kind;
    if (same && call.state === State.ACTIVE && call.kind !== v1.StepKind.FUNCTION) return call;
  }
  return undefined;
}

function fits(act: Activation, s: v1.Step): boolean {
  if ((s.status !== v1.StepStatus.COMPLETED && s.status !== v1.StepStatus.FAILED) || s.settled <= 0) return false;
  if (s.kind !== v1.StepKind.CHILD_WORKFLOW) return waiting(act, s) !== undefined;
  const child = act.children.get(s.name);
  return child !== undefined && !child.step;
}

/** Goes on with code that waits in memory; false, and nothing is changed, if it does not fit the task. */
export function resume(act: Activation, task: v1.Task): boolean {
  const same = !act.quitted && task.base === act.task.leaseToken && task.owedFrom === act.task.owedFrom;
  if (!same || task.nextHistoryToken || !task.history.every((s) => fits(act, s))) return false;
  act.hold(task);
  // Places that the server gives go on from its own count; ours count the operations, too. So all come after those of
  // earlier leases.
  act.cancelKey = placeOf(act, act.cancelKey);
  const base = (act.base = act.recorded + act.issued);
  act.settled = Math.max(act.settled, ...task.history.map((s) => s.settled));
  act.recorded = base + act.settled;
  act.issued = act.again = act.asking = act.questions = 0;
  act.places.clear();
  act.away = act.closing = false;
  for (const call of act.open) {
    if (!(call instanceof ServerWait)) continue;
    call.asked = call.hinted = false;
    call.known = performance.now();
  }
  for (const s of task.history) take(act, s, base + s.settled);
  if (task.cancelRequested) {
    act.cancelAsked = true;
    act.graceUntil = task.cancelGraceUntil ? unix(task.cancelGraceUntil) : 0;
  }
  for (const call of [...act.parked]) if (call.unpark()) call.woken(); // its time may be over by now
  tryCancel(act);
  act.schedule();
  return true;
}

/** Queues what happened to a step while the run was parked. */
function take(act: Activation, s: v1.Step, key: number): void {
  act.history.set(s.name, s);
  act.size += s.output?.data.length ?? 0;
  const child = act.children.get(s.name);
  if (s.kind === v1.StepKind.CHILD_WORKFLOW && child) {
    Object.assign(child, { step: s, key, place: key, live: false });
    for (const call of [...act.open]) {
      if (call instanceof ChildrenCall && call.state === State.ACTIVE) childrenKnown(act, call);
    }
    return;
  }
  const call = waiting(act, s) as Call;
  if (s.kind === v1.StepKind.SIGNAL && s.status === v1.StepStatus.COMPLETED && !s.signalTimedOut)
    act.unreceived.add(s.name);
  call.record = s;
  queue(act, call, key, false);
}
