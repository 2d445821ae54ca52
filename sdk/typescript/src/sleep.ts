// Sleeps.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import type { Branch } from './branch.js';
import { suspend } from './cache.js';
import { Call } from './call.js';
import { unix, wireDuration, wireTime } from './convert.js';
import { report } from './order.js';

/** Waits for a time. */
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
