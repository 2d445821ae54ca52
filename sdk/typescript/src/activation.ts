// One activation of a run on this worker, from its task to the end of the lease.
//
// Results reach the code one at a time, in the order in which the server recorded them (Step.settled). After each the
// code runs until it is idle, which the next macrotask finds. A call whose name has no record is new: it takes effect at
// once if the code has made all recorded calls that it owes; otherwise it is held, because another branch may still make
// them. If none can, the code has diverged.
import * as v1 from './v1/index.js';
import { Branch, type NameUse, claim, recordedAs, OWN } from './branch.js';
import { type Call, How, State } from './call.js';
import { remember, tryCancel } from './history.js';
import { unix } from './convert.js';
import { atRest, diverge, fail, finish, refused } from './ending.js';
import { ConfigError, type Misuse, detailOf, leaseGone } from './errors.js';
import { Firsts } from './firsts.js';
import { Holding, Notes } from './holding.js';
import { type Answer, type Body, DEFAULTS, Op, type OpKind } from './outbox.js';
import { childrenKnown, hand, handNext, knownAtCancel, queue, type Result } from './order.js';
import { idle, sendRelease } from './parking.js';
import { scope } from './scope.js';
import { StepCall, mayBegin } from './step.js';
import { type ChildState, ChildrenCall, ServerWait } from './waits.js';
import type { Worker } from './worker.js';

/** Operations whose results the code may have seen: the next body waits until they are durable. */
const RESULTS = new Set<OpKind>(['completeStep', 'failStep', 'startChild']);

const MAX_TIMER = 2 ** 31 - 1;

/** How the workflow function ended. */
type Outcome = { output: v1.Payload } | { error: unknown };

export class Activation extends Holding {
  // between two leases, while the code waits in memory
  away = false;
  refusals = false;
  size: number;
  keepUntil = 0;
  /** A task that came before the answer that ends this lease. */
  next: v1.Task | undefined;
  nextPauses = false;

  /** Against a record, without a server. */
  replaying = false;
  /** Name of the step whose recorded result cannot be read. */
  unreadable = '';
  quitted = false;
  closing = false;
  ended = false;
  /** The SDK has failed the run from within its code. */
  rejected = false;
  /** Code was resumed in this turn of the event loop, and may not be idle yet. */
  busy = false;
  mainOver = false;
  endRefused = false;
  outcome: Outcome | undefined;
  cause = '';
  readonly rootBranch = new Branch(this, undefined);
  readonly notes = new Notes(this);

  // operations
  readonly ops = new Map<number, Op>();
  issued = 0;
  asking = 0;
  questions = 0;
  /** Index up to which operations were sent again on a new stream. */
  again = 0;
  /** Where the cancellation took effect, in the order of results. */
  cancelKey = 0;
  /** The highest place that the server has told. */
  settled = 0;
  /** What is added to the places of the server, so that they come after everything of earlier leases. */
  base = 0;
  /** Where the server has recorded results of this activation, by their keys. */
  readonly places = new Map<number, number>();
  /** Is unanswered, and may end the lease: nothing goes behind it. */
  leaving: Op | undefined;
  afterwards: (() => void)[] = [];

  // order of results
  recorded = 0;
  current = 0;
  calling = 0;
  results: Result[] = [];
  endings: Call[] = [];
  held: Call[] = [];
  starting: Call[] = [];
  readonly firsts = new Firsts(this);
  readonly open = new Set<Call>();
  readonly parked = new Set<Call>();
  #bodies: StepCall<unknown>[] = [];
  working = 0;
  bodiesRunning = 0;
  generation = 0;
  readonly history = new Map<string, v1.Step>();
  /** Recorded calls that the code has not made, and whether it owes them. */
  readonly uncalled = new Map<string, boolean>();
  owing = 0;
  ownLeft = 0;
  readonly verdicts = new Map<string, v1.ErrorDetail>();
  verdictCount = 0;
  readonly names = new Map<string, NameUse>();
  misfit: v1.Call | undefined;
  readonly unreceived = new Set<string>();
  readonly children = new Map<string, ChildState>();

  // cancellation and pause
  cancelAsked: boolean;
  cancelling = false;
  cancelled = false;
  pausing = false;
  atWork = new Set<string>();
  graceUntil: number;

  constructor(worker: Worker, task: v1.Task) {
    super(worker);
    this.size = task.input?.data.length ?? 0;
    this.cancelAsked = task.cancelRequested;
    this.graceUntil = task.cancelGraceUntil ? unix(task.cancelGraceUntil) : 0;
    this.hold(task);
  }

  // The life of the code.

  /** Starts the code, with the whole history. */
  begin(steps: readonly v1.Step[]): void {
    for (const s of steps) {
      this.size += s.output?.data.length ?? 0;
      remember(this, s);
    }
    tryCancel(this);
    this.rootBranch.replayed = this.uncalled.size > 0;
    this.resumes();
    scope.run(this, () => {
      this.worker.call(this).then(
        (output) => this.#rootDone({ output }),
        (error: unknown) => this.#rootDone({ error }),
      );
    });
  }

  #rootDone(outcome: Outcome): void {
    this.outcome = outcome;
    this.mainOver = true;
    this.schedule();
  }

  /** Takes note that code of the run runs until the next turn of the event loop. */
  resumes(): void {
    this.worker.turns.resumed(this);
  }

  /** Looks after the run in the next turn of the event loop. */
  schedule(): void {
    this.worker.turns.schedule(this);
  }

  /** Handles an event of the run when its code is idle. */
  post(act: () => void): void {
    this.worker.turns.post(this, act);
  }

  /** Does something later, or after 24 days if that is earlier: timers of Node go no further. */
  after(ms: number, act: () => void): NodeJS.Timeout {
    return setTimeout(() => this.post(act), Math.min(ms, MAX_TIMER));
  }

  /** Hands over results one at a time, and goes on with what follows when all code waits. */
  go(): void {
    if (this.ended || this.quitted || this.away || this.closing) return;
    if (this.firsts.decide()) return;
    if (this.mainOver && finish(this)) return;
    this.#startCalls();
    if (this.closing || handNext(this) || this.mainOver) return;
    if (atRest(this)) diverge(this);
    else if (this.working === 0) idle(this);
  }

  /** Makes the code end: none of it runs any more. */
  quit(cause: string): void {
    if (this.quitted) return;
    this.quitted = true;
    this.cause = cause;
    this.firsts.clear();
    for (const call of [...this.parked]) call.unpark();
    if (this.ended || cause !== 'finished') this.#endBodies();
  }

  #endBodies(): void {
    for (const call of this.open) {
      if (!(call instanceof StepCall)) continue;
      clearTimeout(call.timer);
      call.current?.end(new Error('the run is no longer held by this worker'));
    }
  }

  /** Ends the activation: the lease is no longer held. Further calls have no effect. */
  over(cause: string): void {
    if (this.ended) return;
    this.ended = true;
    this.ops.clear();
    this.notes.rest();
    this.quit(cause);
    this.#endBodies();
    this.open.clear(); // nothing holds the frames of the code any more
    this.results = [];
    this.held = [];
    this.starting = [];
    if (!this.away) this.worker.forget(this);
  }

  // Calls of the code.

  /** Makes a call; the promise settles when its result is handed over, and never if the run is dropped before. */
  make<T>(call: Call<T>): Promise<T> {
    if (this.away) this.worker.cache.drop(this.task.runId); // the code has gone on by itself: it has to be replayed
    if (this.quitted || this.closing) return call.promise;
    try {
      this.#open(call);
    } catch (e) {
      this.reject(e);
    }
    return call.promise;
  }

  #open(call: Call): void {
    const { branch } = call;
    if (call instanceof ChildrenCall) {
      branch.tick();
      if (branch.ownResult) branch.lines = [];
      branch.ownResult = false;
    } else {
      if (call.written.startsWith(OWN)) {
        throw new ConfigError(
          `step name ${JSON.stringify(call.written)}: names that begin with ${OWN} are reserved for the SDK`,
        );
      }
      [call.name, call.record] = claim(this, branch, call.written, call.kind, call.detail);
    }
    call.number = ++this.calling;
    this.open.add(call);
    this.schedule();
    if (call instanceof ChildrenCall) return this.#openChildren(call);
    const { record } = call;
    const verdict = this.verdicts.get(call.name);
    if (verdict?.code === v1.ErrorCode.CANCELLED)
      hand(this, call, How.CANCELLED); // by an earlier version
    else if (verdict && !record) {
      call.failure = verdict;
      hand(this, call, How.RECORDED);
    } else if (record && recordedAs(record, call.kind)) {
      if (record.settled > 0 && call.kind !== v1.StepKind.CHILD_WORKFLOW) queue(this, call, record.settled, false);
      else hand(this, call, How.RECORDED);
    } else if (this.cancelled && !call.clean) hand(this, call, How.CANCELLED);
    else if (record) {
      branch.writeLines();
      this.#activate(call);
    } else this.held.push(call);
    this.release();
    if (call.state === State.ACTIVE && !record) branch.writeLines();
  }

  #openChildren(call: ChildrenCall): void {
    const ended = call.children.some((c) => this.verdicts.get(c.name)?.code === v1.ErrorCode.CANCELLED);
    if (!call.clean && (ended || (this.cancelled && !knownAtCancel(this, call)))) hand(this, call, How.CANCELLED);
    else if (!childrenKnown(this, call)) this.#activate(call);
  }

  /** Fails the run for good from inside a call of its code; returns the error. */
  reject(thrown: unknown): unknown {
    const detail = detailOf(thrown);
    detail.nonRetryable = this.rejected = true;
    fail(this, detail);
    return thrown;
  }

  /** Fails the run whose code did what only steps may do. One in memory finds it again in the replay. */
  misused(error: Misuse): void {
    if (this.away) this.worker.cache.drop(this.task.runId);
    else if (!this.ended) this.reject(error);
  }

  /** Fails the run because of a rejection that nobody handles. */
  unhandled(thrown: unknown): void {
    if (this.away) this.worker.cache.drop(this.task.runId);
    else if (!this.ended) fail(this, detailOf(thrown));
  }

  #activate(call: Call): void {
    call.state = State.ACTIVE;
    call.setWorking(true);
    this.starting.push(call);
  }

  /** Lets the calls that the code made take effect, now that it waits. */
  #startCalls(): void {
    while (this.starting.length > 0 && !this.closing && !this.quitted) {
      const call = this.starting.shift() as Call;
      if (call.state !== State.ACTIVE) continue;
      if (this.replaying) call.halt();
      else call.start();
    }
  }

  /** Lets held calls take effect once nothing is owed. */
  release(): void {
    tryCancel(this);
    if (this.owing > 0 || (this.cancelling && !this.cancelled)) return;
    const { held } = this;
    if (held.length === 0) return;
    this.held = [];
    for (const call of held) this.#activate(call);
  }

  /** Starts a step's code when all earlier results are durable and the lease can be trusted. */
  wantBody(call: StepCall<unknown>): void {
    call.wantsAfter = this.issued;
    this.#bodies.push(call);
    this.startBodies();
  }

  startBodies(): void {
    if (this.#bodies.length === 0) return;
    const waits = this.#bodies.filter(mayBegin);
    this.#bodies = [];
    for (const call of waits) {
      const held = this.pausing || (this.cancelling && !this.cancelled) || !this.worker.session.trusted();
      if (held || !this.#durable(call.wantsAfter)) this.#bodies.push(call);
      else call.body();
    }
  }

  #durable(index: number): boolean {
    for (const op of this.ops.values()) if (op.index <= index && RESULTS.has(op.kind)) return false;
    return true;
  }

  /** Whether nothing else of the run is active, so that the call may park it in one message. */
  alone(call: Call): boolean {
    const one = this.working === 1 && call.working && this.open.size === 1 && this.parked.size === 0;
    const quiet = this.results.length === 0 && this.asking === 0 && this.endings.length === 0;
    const idle = this.held.length === 0 && this.starting.length === 0 && !this.busy && this.firsts.length === 0;
    return one && quiet && idle && (this.cancelled || !this.cancelAsked);
  }

  // Operations.

  /** Sends an operation, with the lease of the run. The answer is taken when it is durable. */
  send<K extends OpKind>(kind: K, body: Partial<Body<K>>, answer?: Answer, refused?: Op['refused']): Op {
    const whole = { ...DEFAULTS[kind], ...this.lease, ...body } as Body<K>;
    return this.sendWhole(kind, whole, answer, refused);
  }

  /** Sends an operation whose body has all fields: results of steps are many, and copies of defaults cost time. */
  sendWhole<K extends OpKind>(kind: K, body: Body<K>, answer?: Answer, refused?: Op['refused']): Op {
    const op = new Op(kind, body, this, ++this.issued, answer, refused);
    if (op.mayEndLease) {
      this.notes.flush();
      this.leaving = op;
    }
    if (op.asks) this.asking++;
    this.ops.set(op.index, op);
    this.worker.session.outbox.send(op);
    return op;
  }

  /** Takes the server's answer to an operation, which is final. */
  answered(op: Op, r: v1.SessionResponse): void {
    if (this.ended || this.ops.get(op.index) !== op) return;
    if (r.error && op.ends(r.error)) {
      if (leaseGone(r.error)) this.lose(r.error.message);
      else refused(this, op, r.error);
      return;
    }
    this.ops.delete(op.index);
    const place = r.completedStep?.step?.settled ?? (r.failedStep ?? r.sleeping ?? r.awaitedSignal)?.settled;
    this.settled = Math.max(this.settled, place ?? 0);
    if (place && (op.asks || this.results.length > 0)) this.places.set(this.recorded + op.index, this.base + place);
    if (op.asks) this.asking--;
    if (op === this.leaving) this.leaving = undefined;
    if (!r.error) op.answer?.(r, op);
    else {
      this.refusals = true;
      op.refused?.(r.error);
    }
    if (this.away) return;
    if (!this.leaving && !this.ended && this.afterwards.length > 0) {
      const { afterwards } = this;
      this.afterwards = [];
      for (const act of afterwards) act();
    }
    this.startBodies();
    this.schedule();
  }

  /** Puts an act off until the answer of an operation that may end the lease; false if there is none. */
  afterLeaving(act: () => void): boolean {
    if (!this.leaving || this.closing || this.ended) return false;
    this.afterwards.push(act);
    return true;
  }

  /** Takes the server's hint that a wait for a step may be over. */
  hint(step: string): void {
    for (const call of [...this.open]) {
      const about = call.name === step || (call instanceof ChildrenCall && call.children.some((c) => c.name === step));
      if (call instanceof ServerWait && about) call.hint();
    }
  }

  /** Drops a run that another worker has or that has ended. */
  lose(why: string): void {
    this.worker.log.info(`lease of run ${this.task.runId} lost; stopping its code: ${why}`);
    this.over('lost');
  }

  /** Releases the run unfinished. Results in flight still count. */
  giveBack(): void {
    if (this.afterLeaving(() => this.giveBack())) return;
    if (!this.ended && !this.closing) {
      this.closing = true;
      sendRelease(this, 'released');
    }
    this.quit('released');
  }

  /** Asks to pause the run; true the first time. */
  askPause(): boolean {
    if (this.pausing || this.ended) return false;
    this.pausing = true;
    this.pauseIfIdle();
    return true;
  }

  /** Takes the request to pause back. */
  goOn(): void {
    if (!this.pausing) return;
    this.pausing = false;
    this.startBodies();
  }

  /** Releases a run that is to be paused if no step's code runs. */
  pauseIfIdle(): void {
    if (!this.pausing || this.bodiesRunning > 0 || this.closing || this.quitted) return;
    if (this.afterLeaving(() => this.pauseIfIdle())) return;
    this.closing = true;
    sendRelease(this, 'paused');
    this.quit('paused');
  }
}
