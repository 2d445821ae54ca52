// What a run makes of answers: the order of results after a broken stream, which the server may have recorded in another
// (PROTOCOL.md §16.4), and answers that come after its end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Activation } from '#sdk/activation.js';
import { State } from '#sdk/call.js';
import type { Op } from '#sdk/outbox.js';
import { deliverable } from '#sdk/order.js';
import { SignalCall, SleepCall } from '#sdk/waits.js';
import { AwaitSignalRequest, SessionResponse, Task } from '#sdk/v1/kagzi/v1/worker.js';
import type { Worker } from '#sdk/worker.js';

/** A worker that only keeps what is sent. */
function fakeWorker(): Worker {
  const none = (): void => undefined;
  const session = { lease: 30_000, keepsOrder: true, outbox: { send: none } };
  const turns = { schedule: none, post: none, resumed: none };
  return { session, turns, options: {}, log: { debug: none } } as unknown as Worker;
}

/** Answers waits for signals in one order, whose results the server recorded in another. Returns the order of results. */
function orderOf(answers: readonly (readonly [wait: number, settled: number])[]): string[] {
  const act = new Activation(fakeWorker(), Task.create({ runId: 'run', leaseToken: 'token' }));
  const ops: Op[] = [];
  const calls = answers.map((_, n) => {
    const call = new SignalCall(act, act.rootBranch, `s-${n}`, undefined, undefined, false);
    call.state = State.ACTIVE;
    ops.push(act.send('awaitSignal', AwaitSignalRequest.create({ hold: true }), (r, op) => void call.answered(r, op)));
    return call;
  });
  act.again = act.issued; // the stream broke, and all were sent again
  for (const [wait, settled] of answers) {
    assert.equal(deliverable(act), false, 'a result would be handed over while one that was sent again is unanswered');
    act.answered(
      ops[wait] as Op,
      SessionResponse.create({ awaitedSignal: { settled, payload: { data: Buffer.from('1') } } }),
    );
  }
  assert.equal(deliverable(act), true);
  return act.results.map((r) => `s-${calls.findIndex((c) => c === r.call)}`);
}

test('results that were sent again are handed over as the server recorded them', () => {
  const orders = [
    [
      [0, 1],
      [1, 2],
      [2, 3],
    ],
    [
      [0, 3],
      [1, 1],
      [2, 2],
    ],
    [
      [2, 2],
      [0, 3],
      [1, 1],
    ],
    [
      [1, 2],
      [0, 3],
      [2, 1],
    ],
    [
      [2, 3],
      [1, 2],
      [0, 1],
    ],
  ] as const;
  for (const answers of orders) {
    const want = [...answers].sort((a, b) => a[1] - b[1]).map(([wait]) => `s-${wait}`);
    assert.deepEqual(orderOf(answers), want, JSON.stringify(answers));
  }
});

test('the answer to a sleep that comes after the end of its run leaves no timer', () => {
  for (const hold of [false, true]) {
    const act = new Activation(fakeWorker(), Task.create({ runId: 'run', leaseToken: 'token' }));
    const call = new SleepCall(act, act.rootBranch, 'long', 3_600_000, 0, false);
    call.state = State.ACTIVE;
    act.open.add(call);
    if (hold) act.open.add(new SleepCall(act, act.rootBranch, 'other', 1, 0, false));
    call.start();
    act.quit('finished');
    const op = [...act.ops.values()][0] as Op;
    act.answered(op, SessionResponse.create({ sleeping: {} }));
    const { timer } = call;
    clearTimeout(timer); // so that a failure ends
    assert.equal(timer, undefined);
  }
});
