// What run.first waits for.
import type { Activation } from './activation.js';
import { silent } from './call.js';

/** What something that run.first waits for knows of its end. */
export interface Ends {
  /** Key of the result during whose handing over it ended; -1 before. */
  endedAt: number;
}

const ENDS = Symbol('ends');
type Followed = Promise<unknown> & { [ENDS]?: Ends };

export function endsOf(promise: Promise<unknown>): Ends | undefined {
  return (promise as Followed)[ENDS];
}

export function setEnds(promise: Promise<unknown>, ends: Ends): void {
  (promise as Followed)[ENDS] = ends;
}

export class Firsts {
  #open: { waits: readonly Ends[]; resolve: (index: number) => void }[] = [];

  constructor(private readonly act: Activation) {}

  get length(): number {
    return this.#open.length;
  }

  /** Waits until one of several has ended; resolves with the index of the first when the code is idle. */
  wait(waits: readonly Ends[]): Promise<number> {
    return new Promise((resolve) => {
      this.#open.push({ waits, resolve });
      this.act.schedule();
    });
  }

  /** Resolves the waits that have an ended call; false if there are none. */
  decide(): boolean {
    if (this.#open.length === 0) return false;
    const { length } = this.#open;
    this.#open = this.#open.filter(({ waits, resolve }) => {
      let first = -1;
      waits.forEach((w, n) => {
        if (w.endedAt >= 0 && (first < 0 || w.endedAt < (waits[first] as Ends).endedAt)) first = n;
      });
      if (first < 0) return true;
      this.act.resumes();
      resolve(first);
      return false;
    });
    return this.#open.length < length;
  }

  clear(): void {
    this.#open = [];
  }

  /** Follows a promise of the run's code, so that run.first knows when it ended. Its errors are silent. */
  follow(promise: Promise<unknown>): Ends {
    const ends: Ends = { endedAt: -1 };
    const mark = (): void => {
      ends.endedAt = this.act.current;
      this.act.schedule();
    };
    silent(promise).then(mark, mark);
    setEnds(promise, ends);
    return ends;
  }
}
