// What the worker sends to the server, in order, and what of it is not answered yet.
//
// An operation is kept until the server has answered it for good: a new stream sends the unanswered ones again. What is
// sent during one turn of the event loop travels as one message, if the server takes batches.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { between } from './convert.js';
import { repeatable, leaseGone } from './errors.js';
import { MAX_REQUEST, serialize } from './wire.js';

export type OpKind = Exclude<keyof v1.SessionRequest, 'seq' | 'after' | 'batch'>;
export type Body<K extends OpKind> = NonNullable<v1.SessionRequest[K]>;

/** Bodies of the operations of runs, with defaults. Copies of them take a tenth of the time of what makes messages. */
export const DEFAULTS = v1.SessionRequest.create({
  ...{ beginStep: {}, completeStep: {}, failStep: {}, sleep: {}, awaitSignal: {}, startChild: {}, awaitChildren: {} },
  ...{ completeWorkflow: {}, failWorkflow: {}, releaseTask: {} },
});

const SUBJECTS: Partial<Record<OpKind, string>> = {
  beginStep: 'the beginning of step',
  completeStep: 'the result of step',
  failStep: 'the failure of step',
  sleep: 'sleep',
  awaitSignal: 'the wait for signal',
  startChild: 'the start of child',
  awaitChildren: 'the wait for child runs',
};
const ENDS = new Set<OpKind>(['completeWorkflow', 'failWorkflow', 'releaseTask']);
const ASKS = new Set<OpKind>(['failStep', 'sleep', 'awaitSignal', 'awaitChildren']);

/** Takes the answer to an operation. */
export type Answer = (r: v1.SessionResponse, op: Op) => void;

/** One message to the server that gets an answer. */
export class Op {
  /** The one before it in its run, which it depends on, until that is answered. */
  prev: Op | undefined;
  seq = 0;
  /** Of the stream that it was queued on last. */
  epoch = 0;
  /** Epoch of the stream on which it was last refused. */
  unknown = 0;
  later = false;
  /** Whether its answer may be a result. */
  readonly asks: boolean;
  /** Whether nothing after it counts until its answer says that the lease continues. */
  readonly mayEndLease: boolean;

  constructor(
    readonly kind: OpKind,
    readonly body: Body<OpKind>,
    readonly act: Activation | undefined,
    readonly index: number,
    readonly answer?: Answer,
    readonly refused?: (d: v1.ErrorDetail) => void,
  ) {
    this.asks = ASKS.has(kind);
    this.mayEndLease = ENDS.has(kind) || (this.asks && !('hold' in body && body.hold));
  }

  get parks(): boolean {
    return this.asks || ('park' in this.body && this.body.park);
  }

  /** Whether the run cannot go on here when the operation is refused. */
  ends(d: v1.ErrorDetail): boolean {
    return leaseGone(d) || (this.refused === undefined && this.kind !== 'beginStep');
  }

  /** Names what the operation records, for messages. */
  subject(): string {
    const b = this.body as { signalName?: string; stepName?: string };
    const subject = SUBJECTS[this.kind];
    return subject ? `${subject} ${b.signalName || b.stepName || ''}`.trim() : "the run's end";
  }
}

/** Most bytes of a batch; what is larger travels alone. */
const BATCH = 64 << 10;

/** Where the messages go; false says that the stream takes no more until it has drained. */
interface Writable {
  write(bytes: Buffer): boolean;
}

/** The operations of a worker: those that wait to be sent, and those that wait for answers. */
export class Outbox {
  /** Number of the stream that they are sent on; 0 without one. */
  epoch = 0;
  #stream: Writable | undefined;
  #batches = false;
  #seq = 0;
  #credit = 0;
  #full = false;
  #due = false;
  /** The sender calls flush when it has sent what belongs together. */
  gathering = false;
  #queue: Op[] = [];
  #urgent: Op[] = [];
  readonly #sent = new Map<number, Op>();
  readonly #runs = new Map<Activation, Map<number, Op>>();
  readonly #repeats = new Map<Activation, { tries: number; waits: boolean }>();
  /** Withdrawn operations whose answers are still to come. */
  readonly #withdrawn = new Map<Activation, Set<Op>>();

  /** answer is called with answers that count. */
  constructor(private readonly answer: (op: Op, r: v1.SessionResponse) => void) {}

  /** Begins to send on a stream, whose hello has been answered. */
  open(stream: Writable, epoch: number, batches: boolean): void {
    this.#stream = stream;
    this.epoch = epoch;
    this.#batches = batches;
    this.#seq = 1;
    this.#credit = 0;
    this.#full = false;
  }

  repeat(): void {
    for (const ops of this.#runs.values()) {
      for (const op of ops.values()) {
        op.later = false;
        this.enqueue(op);
      }
    }
  }

  /** Sends nothing any more, until a stream is opened. Returns the operations of no run, which get no answer. */
  close(): Op[] {
    const own = [...this.#urgent, ...this.#queue, ...this.#sent.values()].filter((op) => !op.act);
    this.epoch = 0;
    this.#stream = undefined;
    this.#queue = [];
    this.#urgent = [];
    this.#sent.clear();
    this.#withdrawn.clear();
    return own;
  }

  send(op: Op): void {
    const act = op.act as Activation;
    let ops = this.#runs.get(act);
    if (!ops) this.#runs.set(act, (ops = new Map<number, Op>()));
    for (const before of ops.values()) op.prev = before; // the last one
    ops.set(op.index, op);
    const { prev } = op;
    if (this.#withdrawn.get(act)?.size) op.later = true;
    else if (prev && (prev.later || prev.epoch !== this.epoch))
      op.later = prev.later; // it is sent together with that one
    else this.enqueue(op);
  }

  /** Forgets an operation that need not be answered any more; what follows it waits for its answer. */
  withdraw(op: Op): void {
    const act = op.act as Activation;
    this.#runs.get(act)?.delete(op.index);
    op.unknown = 0;
    if (!this.epoch || this.#sent.get(op.seq) !== op) return;
    const withdrawn = this.#withdrawn.get(act) ?? new Set();
    this.#withdrawn.set(act, withdrawn.add(op));
  }

  /** Forgets the operations of a run that is no longer held. */
  forget(act: Activation): void {
    this.#runs.delete(act);
    this.#repeats.delete(act);
    this.#withdrawn.delete(act);
  }

  addCredit(tasks: number): void {
    this.#credit += tasks;
    this.#kick();
  }

  /** Queues an operation for the stream; false if there is none, or if it is queued already. */
  enqueue(op: Op, first = false): boolean {
    if (this.epoch === 0 || op.epoch === this.epoch) return false;
    op.epoch = this.epoch;
    (first ? this.#urgent : this.#queue).push(op);
    this.#kick();
    return true;
  }

  drained(): void {
    this.#full = false;
    this.#kick();
  }

  #kick(): void {
    if (this.#due) return;
    this.#due = true;
    if (!this.gathering) queueMicrotask(this.#pump);
  }

  get waits(): boolean {
    return this.#due;
  }

  flush(): void {
    if (this.#due) this.#pump();
  }

  /** Writes what is queued, as far as the stream takes it: heartbeats first, and each alone; credit last. */
  readonly #pump = (): void => {
    this.#due = false;
    let batch: Buffer[] = [];
    let size = 0;
    const flush = (): void => {
      const [one, ...more] = batch;
      if (one) this.#write(more.length === 0 ? one : serialize(v1.SessionRequest, { seq: 0, after: 0, batch }));
      batch = [];
      size = 0;
    };
    let at = 0;
    while (this.epoch && !this.#full) {
      const urgent = this.#urgent.shift();
      const op = urgent ?? this.#queue[at++] ?? this.#takeCredit();
      if (!op) break;
      if (op.act && this.#runs.get(op.act)?.get(op.index) !== op) continue; // the run is over, or it was withdrawn
      const bytes = this.#numbered(op);
      if (!bytes) continue;
      const alone = !this.#batches || urgent !== undefined || bytes.length > BATCH;
      if (alone || size + bytes.length > BATCH) flush();
      batch.push(bytes);
      size += bytes.length;
      if (alone) flush();
    }
    flush();
    this.#queue.splice(0, at);
  };

  #takeCredit(): Op | undefined {
    if (!this.#credit) return undefined;
    const credit = v1.Credit.create({ tasks: this.#credit });
    this.#credit = 0;
    return new Op('credit', credit, undefined, 0);
  }

  #write(bytes: Buffer): void {
    this.#full = !(this.#stream as Writable).write(bytes);
  }

  /** Gives an operation its number on this stream, and returns it encoded; undefined if it is too large. */
  #numbered(op: Op): Buffer | undefined {
    const { prev } = op;
    let after = 0;
    if (prev && (this.#sent.get(prev.seq) === prev || prev.unknown === this.epoch)) after = prev.seq;
    else op.prev = undefined;
    const seq = this.#seq + 1;
    const bytes = serialize<v1.SessionRequest>(v1.SessionRequest, { seq, after, batch: [], [op.kind]: op.body });
    if (bytes.length > MAX_REQUEST) {
      const message = `the message has ${bytes.length} bytes, more than the limit of ${MAX_REQUEST} (8 MiB)`;
      const error = { code: v1.ErrorCode.RESOURCE_EXHAUSTED, message, nonRetryable: true };
      queueMicrotask(() => this.#answered(op, v1.SessionResponse.create({ error })));
      return undefined;
    }
    op.seq = this.#seq = seq;
    op.unknown = 0;
    this.#sent.set(seq, op);
    return bytes;
  }

  /** Takes a message of the server that answers an operation. */
  answered(r: v1.SessionResponse): void {
    const op = this.#sent.get(r.seq);
    if (!op) return;
    this.#sent.delete(r.seq);
    this.#answered(op, r);
  }

  #answered(op: Op, r: v1.SessionResponse): void {
    if (r.error) op.unknown = this.epoch;
    else op.prev = undefined;
    if (!op.act) return op.answer?.(r, op);
    const ops = this.#runs.get(op.act);
    if (ops?.get(op.index) !== op) return this.#answeredLate(op);
    if (r.error && repeatable(r.error)) return this.#repeatLater(op.act);
    this.#repeats.delete(op.act);
    if (!r.error || !op.ends(r.error)) {
      op.unknown = 0; // operations after it may take effect
      ops.delete(op.index);
    }
    this.answer(op, r);
  }

  /** Takes the answer to an operation that was withdrawn: what waits for it goes on. */
  #answeredLate(op: Op): void {
    const act = op.act as Activation;
    const left = this.#withdrawn.get(act);
    left?.delete(op);
    if (!left || left.size > 0) return;
    this.#withdrawn.delete(act);
    for (const waits of this.#runs.get(act)?.values() ?? []) {
      if (!waits.later) continue;
      waits.later = false;
      this.enqueue(waits);
    }
  }

  /** Sends the refused operations of a run again, after a pause that grows. */
  #repeatLater(act: Activation): void {
    for (const op of this.#runs.get(act)?.values() ?? []) if (op.unknown === this.epoch) op.later = true;
    const repeat = this.#repeats.get(act) ?? { tries: 0, waits: false };
    if (repeat.waits) return;
    this.#repeats.set(act, { tries: repeat.tries + 1, waits: true });
    const delay = Math.min(100 * 2 ** Math.min(repeat.tries + 1, 10), 10_000);
    setTimeout(
      () => {
        const now = this.#repeats.get(act);
        if (now) now.waits = false;
        for (const op of this.#runs.get(act)?.values() ?? []) {
          if (!op.later) continue;
          op.later = false;
          op.epoch = 0;
          this.enqueue(op);
        }
      },
      between(delay / 2, delay),
    );
  }
}
