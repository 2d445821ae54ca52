// What is sent during one turn of the event loop travels as one message (PROTOCOL.md §5.9).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Activation } from '#sdk/activation.js';
import { Outbox, Op } from '#sdk/outbox.js';
import { CompleteStepRequest, HeartbeatRequest, SessionRequest, SessionResponse } from '#sdk/v1/kagzi/v1/worker.js';

const BATCH = 64 << 10;

/** An outbox, what it has written, and whether its stream takes more. */
class Fixture {
  readonly written: { bytes: number; message: SessionRequest }[] = [];
  takes = true;
  readonly answers: string[] = [];
  readonly outbox = new Outbox((op) => this.answers.push((op.body as CompleteStepRequest).stepName ?? ''));

  constructor(batches = true) {
    const write = (bytes: Buffer): boolean => {
      this.written.push({ bytes: bytes.length, message: SessionRequest.decode(bytes) });
      return this.takes;
    };
    this.outbox.open({ write }, 1, batches);
  }

  /** Sends results of steps of one run, each of so many bytes. */
  send(...sizes: number[]): void {
    const act = Object.create(null) as Activation;
    sizes.forEach((size, n) => {
      const output = { data: Buffer.alloc(size), metadata: {} };
      this.outbox.send(new Op('completeStep', CompleteStepRequest.create({ stepName: `s-${n}`, output }), act, n + 1));
    });
  }

  /** Returns the messages, those within batches, too. */
  get each(): SessionRequest[] {
    return this.written.flatMap(({ message }) =>
      message.batch.length > 0 ? message.batch.map((one) => SessionRequest.decode(one)) : [message],
    );
  }
}

test('operations of one turn travel as batches of at most 64 KiB, larger ones alone', async () => {
  const f = new Fixture();
  f.send(...Array<number>(50).fill(10), 100 << 10, ...Array<number>(50).fill(3000));
  assert.equal(f.written.length, 0, 'nothing is written before the turn is over');
  await Promise.resolve();
  assert.deepEqual(
    f.each.map((one) => [one.seq, one.completeStep?.stepName]),
    Array.from({ length: 101 }, (_, n) => [n + 2, `s-${n}`]),
  );
  assert.deepEqual(
    f.each.map((one) => one.after),
    [0, ...Array.from({ length: 100 }, (_, n) => n + 2)],
    'each builds on the one before',
  );
  const [small, large, ...rest] = f.written;
  assert.equal(small?.message.batch.length, 50);
  assert.equal(large?.message.completeStep?.stepName, 's-50');
  assert.equal(rest.length, 3);
  for (const { bytes, message } of rest) assert.ok(bytes < BATCH + 100 && message.batch.length > 1, `${bytes} bytes`);
});

test('a heartbeat travels first and alone, credit last', async () => {
  const f = new Fixture();
  f.send(1, 1);
  f.outbox.addCredit(3);
  f.outbox.enqueue(new Op('heartbeat', HeartbeatRequest.create(), undefined, 0), true);
  await Promise.resolve();
  assert.deepEqual(
    f.written.map(({ message }) => message.batch.length),
    [0, 3],
  );
  assert.deepEqual(
    f.each.map((one) => [one.seq, one.heartbeat !== undefined, one.credit?.tasks]),
    [
      [2, true, undefined],
      [3, false, undefined],
      [4, false, undefined],
      [5, false, 3],
    ],
  );
});

test('an older server gets one message for each', async () => {
  const f = new Fixture(false);
  f.send(1, 1, 1);
  await Promise.resolve();
  assert.equal(f.written.length, 3);
  assert.ok(f.written.every(({ message }) => message.completeStep && message.batch.length === 0));
});

test('a stream that is full gets nothing more until it has drained', async () => {
  const f = new Fixture();
  f.takes = false;
  f.send(...Array<number>(5).fill(60 << 10));
  await Promise.resolve();
  const { length } = f.written;
  assert.ok(length >= 1 && length <= 2, `${length} messages`);
  f.takes = true;
  f.outbox.drained();
  await Promise.resolve();
  assert.deepEqual(
    f.each.map((one) => one.seq),
    [2, 3, 4, 5, 6],
  );
});

test('what is unanswered is sent again on a new stream', async () => {
  const f = new Fixture();
  f.send(1, 1);
  await Promise.resolve();
  f.outbox.answered(SessionResponse.create({ seq: 2, completedStep: {} }));
  f.outbox.close();
  f.written.length = 0;
  f.outbox.open({ write: (bytes) => f.written.push({ bytes: 0, message: SessionRequest.decode(bytes) }) > 0 }, 2, true);
  f.outbox.repeat();
  await Promise.resolve();
  assert.deepEqual(
    f.each.map((one) => [one.seq, one.after, one.completeStep?.stepName]),
    [[2, 0, 's-1']],
  );
  f.outbox.answered(SessionResponse.create({ seq: 2, completedStep: {} }));
  assert.deepEqual(f.answers, ['s-0', 's-1']);
});
