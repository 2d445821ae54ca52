// Turns of the event loop: events first, then the runs that were scheduled.
//
// Code that a turn resumes runs when the turn is over. At the next turn it is idle, so that its run may be served again.
// What a turn sends waits for the next one if code was resumed: a result and the end of the run that follows from it are
// one message and one commit. It does not wait while code of a step runs, which may take long.
import type { Activation } from './activation.js';
import type { BeatThread } from './beat.js';
import type { Log } from './log.js';
import type { Outbox } from './outbox.js';
import { scope } from './scope.js';

/** Most rounds of one turn, so that the event loop comes round. */
const ROUNDS = 8;

export class Turns {
  /** Messages wait since the last turn. */
  #late = false;
  #due = new Set<Activation>();
  #busy: Activation[] = [];
  #events: { act: Activation | undefined; handle: () => void }[] = [];
  #begun = false;

  constructor(
    private readonly watch: Pick<BeatThread, 'enter' | 'leave'>,
    private readonly sends: Pick<Outbox, 'gathering' | 'waits' | 'flush'>,
    private readonly log: Log,
  ) {}

  /** Lets nothing wait that the last turn sent: code runs that may take long. */
  flushLate(): void {
    if (!this.#late) return;
    this.#late = false;
    this.sends.flush();
  }

  schedule(act: Activation): void {
    this.#due.add(act);
    this.#begin();
  }

  /** Handles an event when the code of its run is idle. */
  post(act: Activation | undefined, handle: () => void): void {
    this.#events.push({ act, handle });
    this.#begin();
  }

  /** Takes note that code of a run runs until the next turn. */
  resumed(act: Activation): void {
    if (!act.busy) this.#busy.push(act);
    act.busy = true;
    this.schedule(act);
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    setImmediate(this.#serve);
  }

  readonly #serve = (): void => {
    this.watch.enter();
    this.sends.gathering = true;
    for (const act of this.#busy) act.busy = false;
    this.#busy = [];
    scope.run(undefined, this.#rounds); // the code that asked for the turn is that of some run
    this.#begun = false;
    this.sends.gathering = false;
    if (this.#busy.length > 0 && this.sends.waits && !this.#late) this.#late = true;
    else {
      this.#late = false;
      this.sends.flush();
    }
    if (this.#events.length > 0 || this.#due.size > 0) this.#begin();
    else this.watch.leave();
  };

  readonly #rounds = (): void => {
    for (let rounds = 0; rounds < ROUNDS && this.#round(); rounds++);
  };

  /** Serves those whose code is idle; false if there are none. */
  #round(): boolean {
    let served = false;
    const events = this.#events;
    this.#events = [];
    for (const event of events) {
      if (event.act?.busy) this.#events.push(event);
      else served = this.#guarded(event.handle);
    }
    const due = this.#due;
    this.#due = new Set();
    for (const act of due) {
      if (act.busy) this.#due.add(act);
      else served = this.#guarded(() => act.go());
    }
    return served;
  }

  #guarded(handle: () => void): true {
    try {
      handle();
    } catch (e) {
      this.log.error(`cannot handle an event: ${e instanceof Error ? (e.stack ?? e.message) : String(e)}`);
    }
    return true;
  }
}
