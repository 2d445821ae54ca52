// Calls of workflow code, and how each takes effect.
import type * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import type { Branch } from './branch.js';

/** Where a call stands. */
export enum State {
  HELD,
  ACTIVE,
  QUEUED,
  OVER,
}

/** How a call ended: by its record, by an operation of this activation, or by the cancellation. */
export enum How {
  RECORDED,
  REPORTED,
  CANCELLED,
}

/** A timer that is due within this many milliseconds is waited for. */
export const PARK_SETTLE = 20;

const ignore = (): void => undefined;

/** Lets an error of a promise that nobody awaits yet pass. */
export function silent<T>(promise: Promise<T>): Promise<T> {
  promise.catch(ignore);
  return promise;
}

/** A call of workflow code that waits for a result. */
export abstract class Call<T = unknown> {
  abstract readonly kind: v1.StepKind;
  name: string;
  record: v1.Step | undefined;
  number = 0;
  state = State.HELD;
  outcome = How.RECORDED;
  /** It goes on by itself. */
  working = false;
  /** Code of its step runs. */
  running = false;
  failing = false;
  /** The start of a child, which is not interrupted. */
  inCode = false;
  failure: v1.ErrorDetail | undefined;
  /** When its wait is over by the server's clock; 0 for none. */
  due = 0;
  parked = false;
  asked = false;
  /** Key of the result during whose handing over it ended; -1 before. */
  endedAt = -1;
  timer: NodeJS.Timeout | undefined;
  readonly promise: Promise<T>;
  #resolve!: (value: never) => void;
  #reject!: (error: unknown) => void;

  constructor(
    readonly act: Activation,
    readonly branch: Branch,
    readonly written: string,
    readonly detail: string,
    /** Whether it is made under cleanup. */
    readonly clean: boolean,
  ) {
    this.name = written;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Where it is recorded. */
  get place(): { stepName: string; branch: string } {
    return { stepName: this.name, branch: this.branch.path };
  }

  /** Settles the promise. What is recorded and cannot be read fails the run instead. */
  settle(): void {
    try {
      this.#resolve(this.value() as never);
    } catch (e) {
      if (this.act.rejected) return;
      void silent(this.promise);
      this.#reject(e);
    }
  }

  abstract start(): void;
  /** Goes on after a wait for a time. */
  abstract woken(): void;
  /** Returns the result for the code, or throws its error. */
  abstract value(): T;

  /** Waits for good: in a replay without a server a call that has no recorded result does not take effect. */
  halt(): void {
    this.setWorking(false);
    this.parked = this.asked = true;
    this.act.parked.add(this);
  }

  /** Waits for some milliseconds as a call that need not keep the run on its worker. */
  park(ms: number): void {
    if (this.act.quitted) return; // nothing ends this wait any more: its timer would keep the process
    this.setWorking(false);
    this.parked = true;
    this.act.parked.add(this);
    this.timer = this.act.after(Math.max(ms, 0), () => this.wake());
  }

  protected wake(): void {
    if (this.act.closing || !this.unpark()) return; // nothing goes behind the release of the run
    this.woken();
    this.act.schedule();
  }

  /** Ends the wait; false if there is none, or if the call has ended. */
  unpark(): boolean {
    if (!this.parked) return false;
    this.parked = false;
    this.act.parked.delete(this);
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.state === State.ACTIVE) this.setWorking(true);
    return this.state === State.ACTIVE;
  }

  /** Counts the call as one that goes on by itself, or not. */
  setWorking(working: boolean): void {
    if (working === this.working) return;
    this.working = working;
    this.act.working += working ? 1 : -1;
    this.act.generation++;
  }
}

/** Compares calls that end with one result: by branch, then in the order of calling. */
export function compare(a: Call, b: Call): number {
  const [x, y] = [a.branch.ordinals, b.branch.ordinals];
  for (let i = 0; i < x.length && i < y.length; i++) {
    const d = (x[i] as number) - (y[i] as number);
    if (d !== 0) return d;
  }
  return x.length - y.length || a.number - b.number;
}
