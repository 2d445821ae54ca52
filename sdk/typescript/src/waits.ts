// Waits that only the server can end: for signals and child runs.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { suspend } from './parking.js';
import { Call, How, PARK_SETTLE, State } from './call.js';
import { type Schema, decode, startOfSignals } from './codec.js';
import { unix, wireDuration, wireTime } from './convert.js';
import { DecodeError, StepError, cancelledError, detailOf, stepError } from './errors.js';
import { failNow } from './history.js';
import { type Branch, VERDICT } from './branch.js';
import type { Answer, Op } from './outbox.js';
import { childrenEnded, hand, report } from './order.js';

/** Milliseconds between questions about a signal or child. */
const ASK_FIRST = 1000;
const ASK_MOST = 10_000;

/** A wait that only the server can end. It asks when it begins, on a hint, after a while, and before it parks. */
export abstract class ServerWait<T> extends Call<T> {
  /** Monotonic time of the last answer without a result; 0 before the first. */
  known = 0;
  hinted = false;
  #interval = ASK_FIRST;
  #late = PARK_SETTLE;

  /** Asks for the result; taken is called with the answer. */
  abstract ask(hold: boolean, taken: Answer): Op;
  /** Takes the answer; false if there is no result yet. */
  abstract answered(r: v1.SessionResponse, op: Op): boolean;

  start(): void {
    this.woken();
  }

  woken(): void {
    const { act } = this;
    const hold = !act.alone(this);
    const overdue = this.due > 0 && act.now() >= this.due;
    if (hold && !overdue && !this.hinted && this.known && performance.now() - this.known < ASK_FIRST)
      return this.#pause();
    this.hinted = false;
    this.ask(hold, (r, op) => {
      const got = this.answered(r, op);
      this.known = performance.now();
      this.asked ||= !got;
      if (this.state !== State.ACTIVE) return;
      if (!got && !hold) {
        this.#pause();
        suspend(act);
      } else if (got || this.hinted) {
        this.known = 0;
        this.woken();
      } else this.#pause();
    });
  }

  /** Waits until it is time to ask again. */
  #pause(): void {
    let pause = this.#interval;
    this.#interval = Math.min(2 * this.#interval, ASK_MOST);
    if (this.due) {
      const left = this.due - this.act.now();
      if (left > PARK_SETTLE) pause = Math.min(pause, left);
      else {
        pause = this.#late;
        this.#late = Math.min(2 * this.#late, ASK_MOST);
      }
    }
    this.park(pause);
  }

  /** Takes the server's hint that there may be a result. */
  hint(): void {
    this.hinted = true;
    if (this.parked) this.wake();
  }
}

export class SignalCall<T> extends ServerWait<T> {
  readonly kind = v1.StepKind.SIGNAL;
  #answer: v1.AwaitSignalResponse | undefined;

  constructor(
    act: Activation,
    branch: Branch,
    private readonly signal: string,
    private readonly schema: Schema<T> | undefined,
    private readonly limit: number | undefined,
    clean: boolean,
  ) {
    super(act, branch, signal, signal, clean);
  }

  override start(): void {
    if (this.record) {
      this.known = this.act.since;
      if (this.record.wakeUpAt) this.due = unix(this.record.wakeUpAt);
    } else if (this.limit !== undefined) this.due = this.act.now() + Math.max(this.limit, 0);
    this.woken();
  }

  ask(hold: boolean, taken: Answer): Op {
    const timeout = this.limit === undefined ? undefined : wireDuration(Math.max(this.limit, 1));
    const question = { ...this.place, signalName: this.signal, hold, timeout };
    return this.act.send('awaitSignal', question, taken);
  }

  answered(r: v1.SessionResponse, op: Op): boolean {
    const answer = r.awaitedSignal;
    if (!answer || (!answer.payload && !answer.timedOut)) return false;
    if (answer.payload && this.act.worker.session.keepsOrder) this.act.unreceived.add(this.name);
    if (this.state === State.ACTIVE) {
      this.#answer = answer;
      report(this.act, this, op);
    }
    return true;
  }

  value(): T {
    if (this.outcome === How.CANCELLED) throw cancelledError(this.name);
    if (this.outcome === How.REPORTED && this.#answer) {
      if (this.#answer.timedOut) throw this.#timedOut();
      return this.#read(this.#answer.payload, '');
    }
    const record = this.record as v1.Step;
    if (record.status === v1.StepStatus.FAILED)
      throw stepError(this.name, record.error ?? v1.ErrorDetail.create(), record.attemptNumber);
    if (record.signalTimedOut) throw this.#timedOut();
    return this.#read(record.output, record.overriddenBy);
  }

  #timedOut(): StepError {
    const message = `no signal ${this.signal} within ${Math.max(this.limit ?? 0, 0) / 1000} s`;
    return stepError(this.name, v1.ErrorDetail.create({ message, code: v1.ErrorCode.TIMEOUT, nonRetryable: true }), 0);
  }

  #read(p: v1.Payload | undefined, overridden: string): T {
    const { act } = this;
    const what = `signal ${this.signal}`;
    try {
      if (overridden) return decode(act.codec, p, act.payloadInfo('step', this.name), what, this.schema);
      const starts = new Set([startOfSignals(act.startDigest(), act.task.input), act.startDigest()]);
      let last: unknown;
      for (const start of starts) {
        try {
          return decode(act.codec, p, { kind: 'signal', start, step: this.signal }, what, this.schema);
        } catch (e) {
          if (!(e instanceof DecodeError)) throw e;
          last = e;
        }
      }
      throw last;
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      throw new StepError(this.name, e.message, '', 'INVALID_ARGUMENT', 0, true); // the sender's fault, not the code's
    }
  }
}

/** A child run that its parent can wait for. */
export class ChildState {
  workflowType = '';
  externalId = '';
  /** With the outcome; undefined before. */
  step: v1.Step | undefined;
  live = false;
  /** Where the server has recorded its end, in the order of results. */
  place: number;

  constructor(
    readonly name: string,
    public runId: string,
    /** Monotonic time of the last answer without a result. */
    readonly known: number,
    public key: number,
  ) {
    this.place = key;
  }

  /** Takes the key of the operation of the activation that told of it, or of its end. */
  told(act: Activation, key: number, step = this.step): void {
    this.step = step;
    this.key = key;
    this.live = true;
    const settled = step?.settled ?? 0;
    this.place = settled > 0 ? act.base + settled : key;
    act.settled = Math.max(act.settled, settled);
  }

  static of(step: v1.Step | undefined, name: string, known: number): ChildState {
    const child = new ChildState(name, step?.childRunId ?? '', known, step?.settled ?? 0);
    if (step && (step.status === v1.StepStatus.COMPLETED || step.status === v1.StepStatus.FAILED)) child.step = step;
    return child;
  }
}

export class ChildCall extends Call<ChildState> {
  readonly kind = v1.StepKind.CHILD_WORKFLOW;
  #child: ChildState | undefined;

  constructor(
    act: Activation,
    branch: Branch,
    name: string,
    workflowType: string,
    private readonly request: () => Partial<v1.StartChildRequest>,
    clean: boolean,
  ) {
    super(act, branch, name, workflowType, clean);
  }

  start(): void {
    const { act } = this;
    this.inCode = true;
    let request: Partial<v1.StartChildRequest>;
    try {
      request = this.request();
    } catch (e) {
      this.#refuse({ ...detailOf(e), stack: '' });
      return;
    }
    const started = (r: v1.SessionResponse, op: Op): void => {
      const child = ChildState.of(r.startedChild?.step, this.name, performance.now());
      child.runId = r.startedChild?.childRunId || child.runId;
      child.told(act, act.recorded + op.index);
      this.#child = child;
      act.children.set(this.name, child);
      hand(act, this, How.REPORTED);
    };
    act.send('startChild', { ...request, ...this.place }, started, (d) => this.#refuse(d));
  }

  /** Records that the server refused the start, so that every replay throws the same error. */
  #refuse(d: v1.ErrorDetail): void {
    const { code, type, message } = d;
    this.failure = v1.ErrorDetail.create({ code, type, message, nonRetryable: true, metadata: { step: this.name } });
    const { act } = this;
    act.verdicts.set(this.name, this.failure);
    failNow(act, ++act.verdictCount === 1 ? VERDICT : `${VERDICT}:${act.verdictCount}`, this, this.failure);
    hand(act, this, How.REPORTED);
  }

  woken(): void {
    // it waits for no time
  }

  value(): ChildState {
    if (this.outcome === How.CANCELLED) throw cancelledError(this.name);
    if (this.failure) throw stepError(this.name, this.failure, 1);
    if (!this.#child) {
      this.#child = ChildState.of(this.record, this.name, this.act.since);
      this.act.children.set(this.name, this.#child);
    }
    return this.#child;
  }
}

export class ChildrenCall extends ServerWait<void> {
  readonly kind = v1.StepKind.CHILD_WORKFLOW;

  constructor(
    act: Activation,
    branch: Branch,
    readonly children: readonly ChildState[],
    clean: boolean,
  ) {
    super(act, branch, '', '', clean);
  }

  openChildren(): ChildState[] {
    return this.children.filter((c) => !c.step);
  }

  override start(): void {
    this.known = this.openChildren()[0]?.known ?? 0;
    this.woken();
  }

  ask(hold: boolean, taken: Answer): Op {
    return askChildren(this.act, this.openChildren(), false, hold, taken);
  }

  answered(r: v1.SessionResponse, op: Op): boolean {
    return childrenEnded(this.act, (r.awaitedChildren as v1.AwaitChildrenResponse).steps, this.children, op);
  }

  value(): void {
    if (this.outcome === How.CANCELLED) throw cancelledError(this.children[0]?.name ?? 'children');
  }
}

/** Asks about some children: about the first of them that ends, or all. */
export function askChildren(
  act: Activation,
  children: readonly ChildState[],
  any: boolean,
  hold: boolean,
  taken: Answer,
): Op {
  const childRunIds = children.map((c) => c.runId);
  return act.send('awaitChildren', { childRunIds, any, hold }, taken);
}

export class SleepCall extends Call<void> {
  readonly kind = v1.StepKind.SLEEP;

  /** left is in milliseconds; until, if it is not 0, is the time by the server's clock. */
  constructor(
    act: Activation,
    branch: Branch,
    name: string,
    private readonly left: number,
    private readonly until: number,
    clean: boolean,
  ) {
    super(act, branch, name, '', clean);
  }

  start(): void {
    const { act } = this;
    if (this.record?.wakeUpAt) {
      this.due = unix(this.record.wakeUpAt);
      this.woken();
      return;
    }
    const hold = !act.alone(this);
    const until = this.until || (this.left <= 0 ? act.now() : 0);
    const wait = until ? { until: wireTime(until) } : { duration: wireDuration(Math.max(this.left, 1)) };
    act.send('sleep', { ...this.place, hold, ...wait }, (r, op) => {
      if ((r.sleeping?.settled ?? 0) > 0) return report(act, this, op);
      this.due = this.until || act.now() + this.left;
      if (hold) return this.woken();
      this.park(this.due - act.now());
      suspend(act);
    });
  }

  woken(): void {
    const { act } = this;
    const left = this.due - act.now();
    if (left > 0) return this.park(left);
    act.send('sleep', { ...this.place, hold: true, over: true }, (_, op) => report(act, this, op));
  }

  /** Returns also if the cancellation ended the sleep: the next call throws then. */
  value(): void {
    return undefined;
  }
}
