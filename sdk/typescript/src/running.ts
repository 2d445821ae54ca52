// Attempts of steps whose code runs.
import type { Attempt } from './step.js';

/** Milliseconds after which the server is told of a running step. */
export const ANNOUNCE_AFTER = 250;

/** The attempts whose code runs on a worker. One timer serves all that have just begun. */
export class Running {
  readonly all = new Set<Attempt>();
  /** Those that have not run for long, in the order in which they began. */
  readonly #fresh = new Set<Attempt>();
  #timer: NodeJS.Timeout | undefined;

  /** Adds an attempt; `long` is called if it still runs after 250 ms. */
  add(attempt: Attempt): void {
    this.all.add(attempt);
    this.#fresh.add(attempt);
    this.#timer ??= setTimeout(this.#look, ANNOUNCE_AFTER);
  }

  /** Removes an attempt that has ended. */
  delete(attempt: Attempt): void {
    this.all.delete(attempt);
    this.#fresh.delete(attempt);
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    const now = performance.now();
    for (const attempt of this.#fresh) {
      const left = attempt.since + ANNOUNCE_AFTER - now;
      if (left > 0.5) {
        this.#timer = setTimeout(this.#look, left);
        return;
      }
      this.#fresh.delete(attempt);
      attempt.call.long(attempt);
    }
  };
}
