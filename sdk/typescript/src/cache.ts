// Parked runs in memory. One that comes back to this worker goes on where it was, without a replay.
//
// Its task then has only what happened meanwhile, and names the lease under which it was parked. If anything does not fit,
// the worker drops the code as at any other suspension, reads the whole history and replays.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { type Call, State } from './call.js';
import { tryCancel } from './cancel.js';
import { unix } from './convert.js';
import { childrenKnown, placeOf, queue } from './order.js';
import { ChildrenCall, ServerWait } from './waits.js';

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

  /** Removes a run and returns it, if it is kept. */
  take(runId: string): Activation | undefined {
    const act = this.runs.get(runId);
    if (act) {
      this.runs.delete(runId);
      this.#size -= act.size + OVERHEAD;
    }
    return act;
  }

  /** Keeps a run. */
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

  /** Drops the code of a run, if it is kept. */
  drop(runId: string): void {
    this.take(runId)?.over('suspended');
  }

  /** Drops all. */
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
