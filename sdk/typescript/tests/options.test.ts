// Options that do not exist, as code without types may give them, and the stacks of errors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, ConfigError, RunError, Worker, workflow } from '@kagzi/sdk';
import { withEnv } from './env.js';

/** Options as code without types gives them. */
const untyped = (options: object): never => options as never;

const refused = (text: string) => (e: unknown) => {
  assert.ok(e instanceof ConfigError, String(e));
  assert.ok(e.message.startsWith(text), e.message);
  return true;
};

test('an option that does not exist is refused where it is given', async () => {
  const one = workflow('one', () => 1);
  assert.throws(
    () => workflow('two', untyped({ que: 'orders' }), () => 1),
    refused('workflow two has no option "que"; there are queue, input, output'),
  );
  assert.throws(() => new Worker([one], untyped({ maxConcurent: 5 })), refused('the worker has no option "maxConc'));
  assert.throws(() => new Client(untyped({ adress: 'x:1' })), refused('the client has no option "adress"'));
  // A program may give both the same.
  const client = new Client(untyped({ profile: 'off', address: '127.0.0.1:1', handleSignals: false }));
  await assert.rejects(
    client.start(one, null, untyped({ externalId: 'a' })),
    refused('the start of one has no option'),
  );
  await assert.rejects(client.listPage(untyped({ tag: {} })), refused('a list has no option "tag"'));
  const tick = client.createSchedule(one, '@daily', null, untyped({ timezone: 'UTC' }));
  await assert.rejects(tick, refused('the schedule of one has no option "timezone"'));
  await assert.rejects(client.schedule('s').update(untyped({ corn: '' })), refused('an update of a schedule has no'));
  client.close();
});

test(
  'an option of a call that does not exist fails the run for good',
  withEnv(async (env) => {
    const options = [untyped({ retries: 5 }), untyped({ retry: { attempt: 5 } }), untyped({ limits: 1 })];
    const [retries, attempt, limits] = options as [never, never, never];
    const calls = {
      'step "a" has no option "retries"': workflow('retries', (run) => run.step('a', () => 1, retries)),
      'a retry policy has no option "attempt"': workflow('attempt', (run) => run.step('a', () => 1, attempt)),
      'the wait for signal "a" has no option "limits"': workflow('limits', (run) => run.signal('a', limits)),
      'child "a" has no option "limits"': workflow('child', (run) => run.child('a', 'x', null, limits)),
    };
    for (const [text, code] of Object.entries(calls)) {
      await assert.rejects(env.run(code, null), (e) => e instanceof RunError && e.detail.startsWith(text));
    }
  }),
);

test(
  "an error's stack ends with the application's code",
  withEnv(async (env) => {
    const fails = (): never => {
      throw new Error('declined');
    };
    const code = workflow('fails', (run) => run.step('pay', fails, { retry: { attempts: 1 } }));
    const run = await env.start(code, null);
    await assert.rejects(run.result('30s'));
    const [step] = await run.steps();
    assert.match(step?.error?.stack ?? '', /^Error: declined\n +at fails \(.*options\.test\.js:\d+:\d+\)$/);
  }),
);
