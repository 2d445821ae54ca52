// The progress text of a run.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { MAX_NAME, cleanText } from './convert.js';
import { Op } from './op.js';

const INTERVAL = 250;

/** The note of one activation: at most one is sent in 250 ms, the last of several. */
export class Notes {
  #text: string | undefined;
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly act: Activation) {}

  /** Sets the text, which is cut to 255 bytes. */
  set(text: string): void {
    const { act } = this;
    if (act.owing > 0 || act.ended || act.away) return;
    this.#text = cleanText(text, MAX_NAME);
    const wait = this.#next - performance.now();
    if (wait <= 0) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), wait);
  }

  /** Sends what was not sent yet. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#text === undefined || this.act.ended) return;
    const { runId, leaseToken } = this.act.task;
    const note = v1.SetNote.create({ runId, leaseToken, note: this.#text });
    this.#text = undefined;
    this.#next = performance.now() + INTERVAL;
    this.act.worker.session.outbox.enqueue(new Op('setNote', note, undefined, 0));
  }

  /** Drops what was not sent, as the run is parked or over. */
  rest(): void {
    this.#text = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Sends a note again whose stream broke, unless there is a newer one. */
  lost(text: string): void {
    if (this.#text === undefined) this.set(text);
  }
}
