// Operations: the messages of a session that the server answers.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { leaseGone } from './errors.js';

/** The kinds of messages to the server. */
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

/** One message to the server that gets an answer. */
export class Op {
  /** The one before it in its run, which it depends on, until that is answered. */
  prev: Op | undefined;
  seq = 0;
  /** Of the stream that it was queued on last. */
  epoch = 0;
  /** Epoch of the stream on which it was last refused. */
  unknown = 0;
  /** It is to be repeated after a delay. */
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
    readonly answer?: (r: v1.SessionResponse, op: Op) => void,
    readonly refused?: (d: v1.ErrorDetail) => void,
  ) {
    this.asks = ASKS.has(kind);
    this.mayEndLease = ENDS.has(kind) || (this.asks && !('hold' in body && body.hold));
  }

  /** Whether the run may be parked by it. */
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
