// Two public examples of the Workflow SDK, in our words, on a Kagzi server: also with the app and the server killed.
import { Client } from '@kagzi/sdk';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { buildApp } from './app/build.js';
import { Scene, until } from './env.js';

let built: string;
const scenes: Scene[] = [];

before(async () => {
  built = await buildApp();
});

after(async () => {
  for (const scene of scenes) await scene.close();
});

async function scene(): Promise<Scene> {
  const made = new Scene();
  scenes.push(made);
  await made.serve();
  return made;
}

test('a sign-up retries a step, sleeps and returns', async () => {
  const s = await scene();
  const app = await s.app(built);
  const runId = await app.start('signUp', 'ann@example.com', 1500);
  const { value } = (await app.call('result', { runId })) as { value: unknown };
  assert.deepEqual(value, { id: 'user-ann', mails: ['welcome to user-ann', 'first-steps to user-ann'] });
  assert.deepEqual(s.lines(), ['create ann@example.com', 'mail welcome 1', 'mail welcome 2', 'mail first-steps 1']);
  const client = new Client({ profile: 'off', address: s.server.address });
  const run = await until(async () => {
    const d = await client.getById(runId);
    return d.status === 'COMPLETED' ? d : undefined;
  }, 'the Kagzi run has completed');
  assert.match(run.tags['workflow'] ?? '', /signUp/);
  client.close();
});

test('a fatal error fails the run, on the Kagzi server too', async () => {
  const s = await scene();
  const app = await s.app(built);
  const runId = await app.start('signUp', 'nobody', 0);
  await assert.rejects(app.call('result', { runId }), /nobody is no address/);
  const client = new Client({ profile: 'off', address: s.server.address });
  const run = await until(async () => {
    const d = await client.getById(runId);
    return d.status === 'FAILED' ? d : undefined;
  }, 'the Kagzi run has failed');
  assert.match(run.error?.detail ?? '', /nobody is no address/);
  client.close();
});

test('a card waits for its guests and streams its progress', async () => {
  const s = await scene();
  const app = await s.app(built);
  const runId = await app.start('birthdayCard', 'Ann', ['Bob', 'Zoë']);
  const lines = app.call('stream', { runId });
  for (const [guest, coming] of [
    ['Bob', true],
    ['Zoë', false],
  ] as const) {
    const answered = (): Promise<unknown> =>
      app.call('answer', { token: `rsvp of ${guest}`, value: { coming } }).catch((e: unknown) => {
        if (String(e).includes('Hook')) return undefined; // the run is not there yet
        throw e;
      });
    await until(answered, `${guest} has answered`);
  }
  const { value } = (await app.call('result', { runId })) as { value: unknown };
  assert.deepEqual(value, { card: 'Happy birthday, Ann! [cake for Ann] with Bob', coming: ['Bob'] });
  const told = ((await lines) as { lines: string[] }).lines;
  assert.deepEqual(told.toSorted(), ['done', 'invited Bob', 'invited Zoë', 'text for Ann']);
  assert.equal(told.at(-1), 'done');
});

test('a killed app goes on where it was', async () => {
  const s = await scene();
  const app = await s.app(built, { GATE: s.gate });
  const runId = await app.start('signUp', 'ann@example.com', 10);
  await until(() => s.lines().includes('mail first-steps 1'), 'the second mail has begun');
  await app.kill();
  writeFileSync(s.gate, '');
  const next = await s.app(built, { GATE: s.gate });
  const { value } = (await next.call('result', { runId })) as { value: unknown };
  assert.deepEqual(value, { id: 'user-ann', mails: ['welcome to user-ann', 'first-steps to user-ann'] });
  const again = ['mail first-steps 1', 'mail first-steps 2'];
  assert.deepEqual(s.lines(), ['create ann@example.com', 'mail welcome 1', 'mail welcome 2', ...again]);
});

test('a killed server loses nothing', async () => {
  const s = await scene();
  const app = await s.app(built, { GATE: s.gate });
  const runId = await app.start('signUp', 'ann@example.com', 10);
  await until(() => s.lines().includes('mail first-steps 1'), 'the second mail has begun');
  await s.server.close(true);
  await s.serve();
  writeFileSync(s.gate, '');
  const { value } = (await app.call('result', { runId })) as { value: unknown };
  assert.deepEqual(value, { id: 'user-ann', mails: ['welcome to user-ann', 'first-steps to user-ann'] });
  assert.deepEqual(
    s.lines().filter((line) => line.startsWith('create')),
    ['create ann@example.com'],
  );
});

test('a cancelled run is cancelled on both sides', async () => {
  const s = await scene();
  const app = await s.app(built);
  const client = new Client({ profile: 'off', address: s.server.address });
  const waiting = async (): Promise<string> => {
    const runId = await app.start('birthdayCard', 'Ann', ['Bob']);
    await until(async () => {
      for await (const hook of client.list({ workflowTypes: ['world.hook'], tags: { run: runId } })) return hook;
      return undefined;
    }, 'the hook is there');
    return runId;
  };
  const ended = (id: string): Promise<unknown> =>
    until(async () => (await client.getById(id)).status === 'CANCELLED', 'the Kagzi run is cancelled');
  const byApp = await waiting();
  await app.call('cancel', { runId: byApp });
  await ended(byApp);
  const byOperator = await waiting(); // also: the token of the first run is free again
  await client.run((await client.getById(byOperator)).runId).cancel();
  await ended(byOperator);
  await assert.rejects(app.call('result', { runId: byOperator }), /cancelled/);
  client.close();
});
