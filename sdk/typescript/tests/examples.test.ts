// Each example does what its text says.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { ServerError } from '@kagzi/sdk';
import { Env, Server } from '@kagzi/sdk/testing';
import { answer } from '../examples/agent.js';
import { type Decision, purchase } from '../examples/approval.js';
import { count, countAll } from '../examples/fanout.js';
import { greet } from '../examples/hello.js';
import { add, compress } from '../examples/pipeline.js';
import { processOrder } from '../examples/saga.js';
import { plan, report } from '../examples/schedule.js';
import { review } from '../examples/review.js';
import * as snippets from '../examples/snippets.js';
import { countdown } from '../examples/twoservers.js';
import { withEnv } from './env.js';

test(
  'hello',
  withEnv(async (env) => {
    const run = await env.start(greet, 'Ada', { alwaysSuspend: true });
    assert.deepEqual(await env.result(run), { text: 'hello Ada', key: `${run.id}/send` }); // the pause passes in no time
    env.replace('compose', () => 'hi Ada');
    env.replace('send', (step) => {
      if (step.attempt < 3) throw new Error('the mail server is down');
      return { text: 'sent', key: '' };
    });
    assert.equal((await env.run(greet, 'Ada')).text, 'sent');
  }),
);

test(
  'approval',
  withEnv(async (env) => {
    for (const [approved, text] of [
      [true, 'a bicycle was bought for Ada'],
      [false, 'a bicycle was declined by Ada'],
    ] as const) {
      const run = await env.start(purchase, 'a bicycle');
      await env.waits(run);
      assert.equal((await run.get()).note, 'waits for a decision');
      await run.signal('decision', { approved, by: 'Ada' } satisfies Decision);
      assert.equal(await run.result('20s'), text);
    }
    assert.equal(await env.run(purchase, 'a boat'), 'nobody decided about a boat'); // after two days
  }),
);

test(
  'fanout',
  withEnv(async (env) => {
    await env.worker([countAll, count]);
    const run = await env.client.start(countAll, ['one two\nthree', '', 'four']);
    assert.deepEqual(await run.result('20s'), { words: 4, failed: ['the text is empty'] });
  }),
);

test(
  'saga',
  withEnv(async (env) => {
    await env.worker([processOrder]);
    const receipt = await (await env.client.start(processOrder, { id: '1', sku: 'book', coolOff: 0.05 })).result('20s');
    assert.deepEqual(receipt, { charge: 'charged 1', parcel: 'shipped 1' });
    const heavy = await env.client.start(processOrder, { id: '2', sku: 'piano', coolOff: 0.05 });
    await assert.rejects(heavy.result('20s'), /too heavy/);
    assert.deepEqual((await heavy.steps()).map((s) => s.name).slice(-2), ['release', 'refund']);
    const cancelled = await env.client.start(processOrder, { id: '3', sku: 'book', coolOff: 60 });
    await env.waits(cancelled);
    await cancelled.cancel();
    assert.equal((await cancelled.wait('20s')).status, 'CANCELLED');
    assert.deepEqual(
      (await cancelled.steps())
        .map((s) => s.name)
        .filter((n) => !n.startsWith('kagzi:'))
        .slice(-2),
      ['release', 'refund'],
    );
  }),
);

test(
  'pipeline',
  withEnv(async (env) => {
    const folder = mkdtempSync(join(tmpdir(), 'kagzi-pipeline-'));
    try {
      const file = join(folder, 'text');
      writeFileSync(file, 'some text');
      await env.worker([compress(folder)]);
      const [run] = await add(env.client, [file]);
      assert.ok(run && !(run instanceof ServerError));
      const { stored } = await run.result('20s');
      assert.equal(gunzipSync(readFileSync(stored)).toString(), 'some text');
      const [again] = await add(env.client, [file]);
      assert.ok(again && !(again instanceof ServerError) && again.existed && again.id === run.id);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }),
);

test(
  'agent',
  withEnv(async (env) => {
    const text = await env.run(answer, 'How warm is it in Oslo?', { alwaysSuspend: true });
    assert.equal(text, 'The answer is: 12 degrees in Oslo');
  }),
);

test(
  'schedule',
  withEnv(async (env) => {
    await env.worker([report]);
    const schedule = await plan(env.client);
    assert.equal((await plan(env.client)).id, schedule.id);
    assert.equal((await schedule.get()).timeZone, 'Europe/Berlin');
    assert.match(String(await (await schedule.trigger()).result('20s')), /^report of \d{4}-\d\d-\d\dT\d\d:\d\d UTC$/);
    const found: string[] = [];
    for await (const run of schedule.runs()) found.push(run.status);
    assert.deepEqual(found, ['COMPLETED']);
  }),
);

test('twoservers goes on when its worker is stopped', async () => {
  const server = await Server.start();
  const env = new Env(server);
  try {
    await env.worker([countdown], { workerId: 'one', drainTimeout: 0 });
    const run = await env.client.start(countdown, 2);
    await env.until(async () => (await run.steps()).some((s) => s.settled > 0));
    await env.stopWorkers();
    await env.worker([countdown], { workerId: 'two' });
    assert.deepEqual(await run.result('20s'), ['one', 'two']);
  } finally {
    await env.close();
    await server.close();
  }
});

test(
  'review',
  withEnv(async (env) => {
    const run = await env.start(review, { claim: 'c-1', label: 'water damage' });
    await run.signal('offer', 1000);
    await env.until(async () => (await run.get()).note === 'offers 1000, waits for a decision');
    await run.signal('decision', { approved: true, by: 'Ada' });
    assert.deepEqual(await run.result('20s'), { approved: true, by: 'Ada' });
  }),
);

test(
  'the snippets of the guide',
  withEnv(async (env) => {
    const { pay, prepare, approve, ledger, deliver } = snippets;
    const figures = { began: 0, ended: 0, steps: 0 };
    await env.worker([pay, prepare, approve, ledger, deliver], { interceptors: [snippets.measured(figures)] });
    const { client } = env;
    assert.equal(await env.result(await client.start(pay, 'visa')), 'visa charge');
    assert.equal(await env.result(await client.start(pay, 'declined')), 'another card is needed');
    const busy = await client.start(pay, 'busy');
    const step = await env.until(async () => (await busy.steps()).find((s) => s.retryAt));
    const after = (step?.retryAt?.seconds ?? 0) - (step?.startedAt?.seconds ?? 0);
    assert.ok(after >= 299 && after <= 310, `the next attempt comes after ${after} s, want 300`);
    await busy.terminate();
    assert.deepEqual(await env.result(await snippets.startOrder(client, 'o-1')), ['o-1 is packed', 'invoice for o-1']);
    assert.equal(await env.result(await client.start(approve, 'o-2')), 'nobody answered for o-2');
    const run = await client.start(approve, 'o-3');
    await run.signal('answer', true);
    assert.equal(await run.result('20s'), 'o-3 approved: true');
    assert.equal(await env.result(await client.start(deliver, 'o-4')), 'parcel of o-4');
    assert.deepEqual([figures.began, figures.ended], [7, 6]);
    const week = await client.start(ledger, { days: 0, sum: 0 });
    await env.until(async () => (await env.jump()) && (await week.get()).continuedAsRunId);
    const following = await client.get((await week.get()).continuedAsRunId);
    assert.deepEqual(following.input(), { days: 7, sum: 7 });
    await client.run(following.runId).terminate();
    const worker = snippets.worker({ zone: 'a' });
    assert.ok(worker.serves('deliver'));
    snippets.encrypted(new Uint8Array(32)).close();
  }),
);
