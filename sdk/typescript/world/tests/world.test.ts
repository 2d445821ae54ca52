// The parts of the world on a real server: the rules of the log, hooks, lists, the queue and streams.
import { Client } from '@kagzi/sdk';
import { Server } from '@kagzi/sdk/testing';
import { createWorld } from '@kagzi/world';
import { EntityConflictError, HookNotFoundError, PreconditionFailedError, RunExpiredError } from '@workflow/errors';
import { type CreateEventRequest, type MessageId, SPEC_VERSION_CURRENT, type World, ulidToDate } from '@workflow/world';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { until } from './env.js';

const specVersion = SPEC_VERSION_CURRENT;
const QUEUE = '__wkf_workflow_demo';
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

let server: Server;
let world: World;
let other: World; // of another process of the app, which does no work
let client: Client;
let handler: ReturnType<World['createQueueHandler']>;
let handle: Parameters<World['createQueueHandler']>[1] = () => Promise.resolve();
const app = createServer((incoming, outgoing) => {
  const parts: Buffer[] = [];
  incoming.on('data', (part: Buffer) => parts.push(part));
  incoming.on('end', () => {
    const headers = Object.entries(incoming.headers).map(([key, value]) => [key, String(value)] as [string, string]);
    const request = new Request('http://app/', { method: 'POST', headers, body: Buffer.concat(parts) });
    void handler(request).then(async (r) => outgoing.writeHead(r.status).end(await r.text()));
  });
});

before(async () => {
  server = await Server.start();
  await new Promise<void>((done) => app.listen(0, '127.0.0.1', done));
  const baseUrl = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
  const options = { profile: 'off', address: server.address, baseUrl };
  world = createWorld(options);
  other = createWorld(options);
  client = new Client({ profile: 'off', address: server.address });
  handler = world.createQueueHandler('__wkf_workflow_', (message, meta) => handle(message, meta));
  await world.start?.();
});

after(async () => {
  await world.close?.();
  await other.close?.();
  client.close();
  app.closeAllConnections();
  app.close();
  await server.close();
});

let runs = 0;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

async function newRun(workflowName = 'demo'): Promise<string> {
  let time = '';
  for (let left = Date.now(); time.length < 10; left = Math.floor(left / 32)) time = (DIGITS[left % 32] ?? '') + time;
  const runId = `wrun_${time}${String(++runs).padStart(16, '0')}`;
  const eventData = { deploymentId: 'd', workflowName, input: bytes('in') };
  await world.events.create(runId, { eventType: 'run_created', specVersion, eventData });
  return runId;
}

const stepCreated = (correlationId: string): CreateEventRequest => {
  return { eventType: 'step_created', specVersion, correlationId, eventData: { stepName: 's', input: bytes('step') } };
};
const hookCreated = (correlationId: string, token: string): CreateEventRequest => {
  return { eventType: 'hook_created', specVersion, correlationId, eventData: { token } };
};
const started: CreateEventRequest = { eventType: 'run_started', specVersion };
const completed: CreateEventRequest = { eventType: 'run_completed', specVersion, eventData: { output: bytes('out') } };

test('a run goes from pending to its end, and no further', async () => {
  const runId = await newRun();
  assert.equal((await other.runs.get(runId)).status, 'pending');
  const first = await world.events.create(runId, started);
  assert.deepEqual(
    first.events?.map((e) => e.eventType),
    ['run_created', 'run_started'],
  );
  assert.deepEqual(first.run?.input, bytes('in'));
  const again = await other.events.create(runId, started);
  assert.equal(again.event, undefined);
  assert.equal(again.run?.status, 'running');
  const ends = await Promise.allSettled([world, other].map((w) => w.events.create(runId, completed)));
  assert.equal(ends.filter((one) => one.status === 'fulfilled').length, 1);
  const late = ends.find((one) => one.status === 'rejected');
  assert.ok(EntityConflictError.is(late?.reason), String(late?.reason));
  const run = await other.runs.get(runId);
  assert.equal(run.status, 'completed');
  assert.deepEqual(run.output, bytes('out'));
  await assert.rejects(world.events.create(runId, started), (e) => RunExpiredError.is(e));
  await assert.rejects(world.events.create(runId, stepCreated('step_1')), (e) => EntityConflictError.is(e));
  const { data } = await other.events.list({ runId });
  assert.deepEqual(
    data.map((e) => e.eventType),
    ['run_created', 'run_started', 'run_completed'],
  );
});

test('a message that overtakes the creation of its run creates it', async () => {
  const runId = (await newRun()).replace(/.$/, 'Z');
  await assert.rejects(world.events.create(runId, started), /not found/);
  const eventData = { deploymentId: 'd', workflowName: 'demo', input: bytes('early') };
  const { run } = await world.events.create(runId, { eventType: 'run_started', specVersion, eventData });
  assert.equal(run?.status, 'running');
  await assert.rejects(other.events.create(runId, { eventType: 'run_created', specVersion, eventData }), (e) =>
    EntityConflictError.is(e),
  );
});

test('two writers of one step agree on who was first', async () => {
  const runId = await newRun();
  await world.events.create(runId, started);
  const both = await Promise.allSettled([world, other].map((w) => w.events.create(runId, stepCreated('step_1'))));
  assert.equal(both.filter((one) => one.status === 'fulfilled').length, 1);
  const begin: CreateEventRequest = { eventType: 'step_started', specVersion, correlationId: 'step_1' };
  assert.equal((await world.events.create(runId, begin)).step?.attempt, 1);
  const retryAfter = new Date(Date.now() + 60_000);
  const failed = { error: 'busy', retryAfter };
  await other.events.create(runId, {
    eventType: 'step_retrying',
    specVersion,
    correlationId: 'step_1',
    eventData: failed,
  });
  await assert.rejects(world.events.create(runId, begin), { name: 'TooEarlyError' });
  const result = { result: bytes('done') };
  await world.events.create(runId, {
    eventType: 'step_completed',
    specVersion,
    correlationId: 'step_1',
    eventData: result,
  });
  const step = await other.steps.get(runId, 'step_1');
  assert.deepEqual(
    [step.status, step.attempt, step.input, step.output],
    ['completed', 1, bytes('step'), bytes('done')],
  );
  assert.equal((await other.steps.get(runId, 'step_1', { resolveData: 'none' })).output, undefined);
  await assert.rejects(other.events.create(runId, begin), (e) => EntityConflictError.is(e));
});

test('a value that is too large is refused, and its run goes on', async () => {
  const runId = await newRun();
  const correlationId = 'step_1';
  await world.events.create(runId, stepCreated(correlationId));
  const result = new Uint8Array(2 ** 21);
  const large: CreateEventRequest = { eventType: 'step_completed', specVersion, correlationId, eventData: { result } };
  await assert.rejects(world.events.create(runId, large), { status: 413, message: /2 MiB/ });
  const fits: CreateEventRequest = { ...large, eventData: { result: result.subarray(0, 1_500_000) } };
  assert.equal((await world.events.create(runId, fits)).step?.status, 'completed');
});

test('a writer that has not seen an event from outside is refused', async () => {
  const runId = await newRun();
  const { events = [] } = await world.events.create(runId, started);
  const seen = ulidToDate(events.at(-1)?.eventId.slice(5) ?? '')?.getTime() ?? 0;
  await world.events.create(runId, hookCreated('hook_1', 'stale'));
  await until(() => Date.now() > seen + 5, 'the clock goes on');
  const payload = { token: 'stale', payload: bytes('p') };
  await other.events.create(runId, {
    eventType: 'hook_received',
    specVersion,
    correlationId: 'hook_1',
    eventData: payload,
  });
  await assert.rejects(world.events.create(runId, completed, { stateUpdatedAt: seen }), (e) =>
    PreconditionFailedError.is(e),
  );
  assert.equal((await world.runs.get(runId)).status, 'running');
  await world.events.create(runId, completed, { stateUpdatedAt: Date.now() + 1000 });
  assert.equal((await other.runs.get(runId)).status, 'completed');
});

test('a token belongs to one hook until its run ends', async () => {
  const token = 'Ünïque #1';
  const [one, two] = [await newRun(), await newRun()];
  const made = await world.events.create(one, hookCreated('hook_1', token));
  assert.equal(made.hook?.token, token);
  assert.equal((await other.hooks.getByToken(token)).runId, one);
  assert.equal((await other.hooks.get('hook_1')).runId, one);
  await assert.rejects(world.events.create(one, hookCreated('hook_1', token)), (e) => EntityConflictError.is(e));
  const { event, hook } = await other.events.create(two, hookCreated('hook_2', token));
  assert.equal(hook, undefined);
  assert.deepEqual(event?.eventType === 'hook_conflict' && event.eventData, { token, conflictingRunId: one });
  assert.deepEqual(
    (await other.hooks.list({ runId: one })).data.map((h) => h.hookId),
    ['hook_1'],
  );
  await world.events.create(one, { eventType: 'run_cancelled', specVersion });
  await assert.rejects(world.hooks.getByToken(token), (e) => HookNotFoundError.is(e));
  assert.equal((await other.events.create(two, hookCreated('hook_3', token))).hook?.hookId, 'hook_3');
  await other.events.create(two, { eventType: 'hook_disposed', specVersion, correlationId: 'hook_3' });
  await assert.rejects(other.hooks.getByToken(token), (e) => HookNotFoundError.is(e));
  for await (const held of client.list({
    workflowTypes: ['world.hook'],
    tags: { hook: 'hook_3' },
    status: ['SLEEPING'],
  })) {
    assert.fail(`${held.runId} still holds the token`);
  }
  const again = await world.events.create(await newRun(), hookCreated('hook_4', token));
  assert.equal(again.hook?.hookId, 'hook_4');
});

test('lists have pages, orders and filters', async () => {
  const name = `listed ${Date.now()}`;
  const ids = [await newRun(name), await newRun(name), await newRun(name)];
  await world.events.create(ids[1] ?? '', completed);
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await other.runs.list({ workflowName: name, pagination: { limit: 2, ...(cursor ? { cursor } : {}) } });
    found.push(...page.data.map((run) => run.runId));
    cursor = page.hasMore ? (page.cursor ?? undefined) : undefined;
  } while (cursor);
  assert.deepEqual(found, ids.toReversed());
  const done = await other.runs.list({ workflowName: name, status: 'completed', resolveData: 'none' });
  assert.deepEqual(
    done.data.map((run) => [run.runId, run.output]),
    [[ids[1], undefined]],
  );

  const runId = ids[0] ?? '';
  const steps = ['step_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'step_b', 'step_c'];
  for (const id of steps) await world.events.create(runId, stepCreated(id));
  const first = await other.events.list({ runId, pagination: { limit: 2 } });
  assert.equal(first.hasMore, true);
  const rest = await other.events.list({ runId, pagination: { cursor: first.cursor ?? '' } });
  assert.deepEqual(
    [...first.data, ...rest.data].map((e) => e.correlationId),
    [undefined, ...steps],
  );
  assert.equal(rest.hasMore, false);
  await world.events.create(runId, started); // a cursor at the end goes on with what comes later
  const later = await other.events.list({ runId, pagination: { cursor: rest.cursor ?? '' } });
  assert.deepEqual(
    later.data.map((e) => e.eventType),
    ['run_started'],
  );
  const down = await other.steps.list({ runId, pagination: { sortOrder: 'desc', limit: 1 } });
  assert.deepEqual(
    down.data.map((s) => s.stepId),
    ['step_c'],
  );
  await assert.rejects(other.events.list({ runId, pagination: { cursor: 'x' } }), { status: 400 });
  await assert.rejects(other.events.list({ runId, pagination: { limit: 1001 } }), /limit is 1001, want 1 to 1000/);
  const known = await other.events.listByCorrelationId({ correlationId: 'step_c', runId });
  assert.deepEqual(await other.events.listByCorrelationId({ correlationId: 'step_c' }), known);
  const event = known.data[0];
  assert.deepEqual(await world.events.get(runId, event?.eventId ?? ''), event);
});

test('the queue retries, delays and takes a key once', async () => {
  const seen: { message: unknown; attempt: number; messageId: MessageId; at: number }[] = [];
  const runId = await newRun();
  handle = (message, { attempt, messageId }) => {
    seen.push({ message, attempt, messageId, at: performance.now() });
    if (seen.length === 1) throw new Error('the handler is not ready');
    return Promise.resolve(seen.length === 2 ? { timeoutSeconds: 0.2 } : undefined);
  };
  const message = { runId, requestedAt: new Date() };
  const options = { idempotencyKey: `key of ${runId}`, delaySeconds: 0.3 };
  const begun = performance.now();
  const [one, two] = [await world.queue(QUEUE, message, options), await other.queue(QUEUE, message, options)];
  assert.equal(one.messageId, two.messageId);
  await until(() => seen.length === 3, 'three deliveries');
  assert.deepEqual(
    seen.map((d) => d.attempt),
    [1, 2, 1],
  );
  assert.ok(seen.every((d) => d.messageId === one.messageId));
  assert.deepEqual(
    seen.map((d) => d.message),
    [message, message, message],
  );
  assert.ok((seen[0]?.at ?? 0) - begun >= 300, `the first delivery was after ${(seen[0]?.at ?? 0) - begun} ms`);
  const run = client.run(one.messageId?.slice(4) ?? '');
  assert.equal((await run.wait('20s')).status, 'COMPLETED');
  const steps = (await run.steps()).map((step) => step.name);
  assert.deepEqual(steps, ['deliver', 'deliver', 'delay', 'deliver:2']);
  const wrong = await handler(new Request('http://app/', { method: 'POST', body: '{}' }));
  assert.equal(wrong.status, 400);
});

async function all(stream: ReadableStream<Uint8Array>): Promise<string[]> {
  const found: string[] = [];
  for await (const chunk of stream) found.push(new TextDecoder().decode(chunk));
  return found;
}

test('a stream is read live, from an index, and in pages', async () => {
  const runId = await newRun();
  const name = `strm_${runId}_user`;
  const live = all(await other.readFromStream(name)); // before there is anything
  await world.writeToStream(name, runId, 'a');
  await other.writeToStreamMulti?.(name, runId, [bytes('b'), 'c', 'd']);
  assert.deepEqual(await other.getStreamInfo(name, runId), { tailIndex: 3, done: false });
  const page = await other.getStreamChunks(name, runId, { limit: 2 });
  assert.deepEqual(
    page.data.map((c) => c.index),
    [0, 1],
  );
  assert.deepEqual([page.hasMore, page.done], [true, false]);
  const rest = await world.getStreamChunks(name, runId, { cursor: page.cursor ?? '' });
  assert.deepEqual(rest.data, [
    { index: 2, data: bytes('c') },
    { index: 3, data: bytes('d') },
  ]);
  await world.closeStream(name, runId);
  const kept = (): ReturnType<Client['listPage']> =>
    client.listPage({ workflowTypes: ['world.stream'], tags: { run: runId } });
  await until(async () => (await kept()).runs[0]?.status === 'COMPLETED', 'the run of the stream has ended');
  await world.writeToStream(name, runId, 'after the end');
  assert.deepEqual(await live, ['a', 'b', 'c', 'd']);
  assert.deepEqual(await all(await world.readFromStream(name, 2)), ['c', 'd']);
  assert.deepEqual(await all(await world.readFromStream(name, -3)), ['b', 'c', 'd']);
  assert.deepEqual(await other.getStreamInfo(name, runId), { tailIndex: 3, done: true });
  assert.deepEqual(await world.listStreamsByRunId(runId), [name]);
  assert.equal((await kept()).runs.length, 1); // what comes after the end is dropped
  await assert.rejects(world.writeToStream(`${name}_2`, runId, new Uint8Array(2 ** 20 + 1)), /at most 1048576/);
});

test('a stream goes on in another run when one is full', async () => {
  const runId = await newRun();
  const name = `strm_${runId}_long`;
  const chunk = new Uint8Array(2 ** 20).fill(65); // 64 MiB, the limit of a run, are fewer than 10,000 signals
  for (let n = 0; n < 50; n++) await world.writeToStream(name, runId, chunk);
  await other.writeToStream(name, runId, 'last'); // by a writer that begins at the first run
  await world.closeStream(name, runId);
  assert.deepEqual(await other.getStreamInfo(name, runId), { tailIndex: 50, done: true });
  assert.deepEqual(await all(await other.readFromStream(name, -1)), ['last']);
  assert.deepEqual(await world.listStreamsByRunId(runId), [name]);
});
