// What a client reads: lists with queries, pages of lists, signals.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AESCodec, Client, type ClientInterceptor, ServerError, workflow } from '@kagzi/sdk';
import { withEnv } from './env.js';

const waits = workflow('waits', async (run) => run.signal<number>('go'));

test(
  'a list takes a query beside the other filters',
  withEnv(async (env) => {
    const tags = ['a', 'b', 'c'].map((name) => ({ name }));
    const runs = await env.client.startMany(waits, [null, null, null], {}, (i) => ({ tags: tags[i] ?? {} }));
    const ids = runs.map((run) => (run instanceof ServerError ? '' : run.id));
    const listed = async (filters: Parameters<Client['list']>[0]): Promise<string[]> => {
      const found: string[] = [];
      for await (const d of env.client.list(filters)) found.push(d.runId);
      return found.sort();
    };
    assert.deepEqual(await listed({ query: 'tag.name = a or tag.name = c', pageSize: 1 }), [ids[0], ids[2]].sort());
    assert.deepEqual(await listed({ query: 'not tag.name = a', tags: { name: 'b' } }), [ids[1]]);
    await assert.rejects(listed({ query: 'colour = red' }), /INVALID_ARGUMENT: query.*colour/);
    const first = await env.client.listPage({ pageSize: 2 });
    const second = await env.client.listPage({ pageSize: 2 }, first.nextPageToken);
    assert.deepEqual([...first.runs, ...second.runs].map((d) => d.runId).sort(), [...ids].sort());
    assert.equal(second.nextPageToken, '');
  }),
);

test(
  'a query is not sent to a server that would ignore it',
  withEnv(async (env) => {
    const called: string[] = [];
    const old: ClientInterceptor = (call, next) => {
      called.push(call.method);
      const answer = { version: '0.8', supportedFeatures: ['keys'] };
      return call.method === 'GetServerInfo' ? Promise.resolve(answer as Awaited<ReturnType<typeof next>>) : next();
    };
    const options = { profile: 'off', address: env.server.address, namespace: env.namespace };
    const client = new Client({ ...options, interceptors: [old] });
    const listed = async (): Promise<void> => {
      for await (const d of client.list({ query: 'status = FAILED or attempts > 1' })) assert.fail(d.runId);
    };
    await assert.rejects(listed(), { code: 'PRECONDITION_FAILED', message: /version 0\.8.*upgrade it/ });
    assert.deepEqual(called, ['GetServerInfo']);
    for await (const d of client.list()) assert.fail(d.runId);
    client.close();
  }),
);

test(
  'signals are read in order, from a place on',
  withEnv(async (env) => {
    const codec = new AESCodec({ k1: new Uint8Array(32) }, 'k1');
    const options = { profile: 'off', address: env.server.address, namespace: env.namespace };
    const client = new Client({ ...options, codec });
    await env.worker([waits], { codec });
    const run = await client.start(waits, null);
    for (let n = 1; n <= 7; n++) await run.signal('later', { n }, { id: `s${n}` });
    await run.signal('go', 1);
    assert.equal(await run.result('20s'), 1);
    const read = async (o: { after?: number; pageSize?: number }): Promise<unknown[]> => {
      const found: unknown[] = [];
      for await (const s of run.signals(o)) found.push([s.sequence, s.name, s.id.slice(0, 2), s.takenBy, s.value()]);
      return found;
    };
    const all = await read({});
    assert.deepEqual(all.slice(0, 2), [
      [1, 'later', 's1', '', { n: 1 }],
      [2, 'later', 's2', '', { n: 2 }],
    ]);
    assert.equal(all.length, 8);
    assert.deepEqual((all[7] as unknown[]).slice(3), ['go', 1]);
    for (let after = 0; after <= 9; after++) {
      for (const pageSize of [1, 2, 3, 100]) assert.deepEqual(await read({ after, pageSize }), all.slice(after));
    }
    client.close();
  }),
);
