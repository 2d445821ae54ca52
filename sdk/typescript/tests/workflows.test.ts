// Workflows on the real server: order of results, suspension, misuse.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Cancelled, type Run, RunError, TimedOut, workflow } from '@kagzi/sdk';
import { type Env } from '@kagzi/sdk/testing';
import { z } from 'zod';
import { withEnv } from './env.js';

/** Runs a workflow live, then with a replay at every result, and wants the same from both. */
async function both<Out>(env: Env, code: (run: Run) => Promise<Out>): Promise<Out> {
  const live = await env.run(workflow('idiom', code), null);
  assert.deepEqual(await env.run(workflow('idiom', code), null, { alwaysSuspend: true }), live);
  return live;
}

/** A step that takes so many milliseconds. */
const slow = (run: Run, name: string, ms: number): Promise<string> =>
  run.step(name, async () => {
    await sleep(ms);
    return name;
  });

test(
  'idioms of order give live what they give in a replay',
  withEnv(async (env) => {
    const code = async (run: Run) => {
      const first = await Promise.race([slow(run, 'a', 60), slow(run, 'b', 5)]);
      await run.step(`chose-${first}`, () => null);
      const any = await Promise.any([slow(run, 'c', 60), slow(run, 'd', 5)]);
      const settled = await Promise.allSettled([
        slow(run, 'e', 20),
        run.step('f', () => Promise.reject(new Error('no')), { retry: { attempts: 1 } }),
      ]);
      const shared: string[] = [];
      await run.map(['x', 'y', 'z'], async (branch, name, n) => {
        shared.push(await slow(branch, name, 40 - 15 * n));
        await branch.step(`${name}-after-${shared.length}`, () => null);
      });
      const named = await run.first({ quick: slow(run, 'quick', 5), late: run.sleep('late', '3d') });
      return { first, any, settled: settled.map((s) => s.status), shared, named: named.key };
    };
    for (const alwaysSuspend of [false, true]) {
      const run = await env.start(workflow('idiom', code), null, { alwaysSuspend });
      const got = await run.result('20s');
      assert.deepEqual(got.settled, ['fulfilled', 'rejected']);
      assert.equal(got.named, 'quick');
      assert.ok(['c', 'd'].includes(got.any));
      const steps = (await run.steps()).map((s) => s.name);
      // A replay in which another result came first would have chosen another name, and failed the run.
      assert.deepEqual(
        steps.filter((name) => name.startsWith('chose-')),
        [`chose-${got.first}`],
      );
      got.shared.forEach((name, n) =>
        assert.ok(steps.includes(`${name}-after-${n + 1}`), `${name} of ${got.shared.join()}`),
      );
      await env.stopWorkers();
    }
  }),
);

test(
  'a replay at every result gives the same',
  withEnv(async (env) => {
    const got = await both(env, async (run) => {
      const texts: string[] = [];
      for (let n = 0; n < 3; n++) texts.push(await run.step('say', ({ attempt }) => `${n}/${attempt}`));
      await run.sleep('night', '30d');
      const id = [run.uuid(), run.random()];
      return { texts, same: await run.step('same', () => id.length), ids: id.length };
    });
    assert.deepEqual(got, { texts: ['0/1', '1/1', '2/1'], same: 2, ids: 2 });
  }),
);

test(
  'nothing in the code sees a suspension',
  withEnv(async (env) => {
    const seen: string[] = [];
    async function* values(run: Run): AsyncGenerator<number> {
      try {
        for (let n = 0; n < 3; n++) {
          await run.sleep(`tick-${n}`, '1d');
          yield n;
        }
      } finally {
        seen.push('generator');
      }
    }
    const code = workflow('quiet', async (run) => {
      let total = 0;
      try {
        for await (const n of values(run)) total += n;
        await Promise.race([run.sleep('a', '2d'), run.sleep('b', '3d')]).catch(() => seen.push('race'));
        await Promise.allSettled([run.sleep('c', '1d')]).finally(() => seen.push('settled'));
      } catch {
        seen.push('catch');
      } finally {
        seen.push('finally');
      }
      return total;
    });
    assert.equal(await env.run(code, null), 3);
    assert.deepEqual(seen, ['generator', 'settled', 'finally']);
    seen.length = 0;
    const run = await env.start(code, null, { alwaysSuspend: true });
    await env.waits(run);
    await run.terminate();
    await env.stopWorkers();
    assert.deepEqual(seen, []);
  }),
);

test(
  'parked runs are collected',
  withEnv(async (env) => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const count = 5000;
    let collected = 0;
    const registry = new FinalizationRegistry(() => collected++);
    const parks = workflow('parks', async (run) => {
      const frame = { big: new Array<number>(1000).fill(1) };
      registry.register(frame, undefined);
      try {
        await Promise.race([run.signal('never'), run.sleep('for-good', '300d')]);
      } finally {
        frame.big.length = 0;
      }
    });
    await env.worker([parks], { cache: 0 });
    for (let n = 0; n < count; n += 1000) await env.client.startMany(parks, new Array<null>(1000).fill(null));
    await env.until(async () => {
      for await (const _ of env.client.list({ status: ['PENDING', 'RUNNING'], pageSize: 1 })) return false;
      return true;
    }, '120s');
    await env.until(() => {
      gc();
      return collected >= count;
    });
    assert.equal(collected, count);
  }),
);

test(
  'a parked run goes on in memory',
  withEnv(async (env) => {
    let begun = 0;
    const waits = workflow('waits', async (run) => {
      begun++;
      return (await run.signal<string>('go')) + (await run.signal<string>('go'));
    });
    const run = await env.start(waits, null);
    for (const text of ['a', 'b']) {
      await env.waits(run);
      await run.signal('go', text);
      await env.until(async () => (await run.steps()).filter((s) => s.settled > 0).length > (text === 'a' ? 0 : 1));
    }
    assert.equal(await run.result('10s'), 'ab');
    assert.equal(begun, 1);
  }),
);

test(
  'an error that nobody awaits yet does not end the process',
  withEnv(async (env) => {
    const got = await both(env, async (run) => {
      const fails = run.step('fails', () => Promise.reject(new Error('no')), { retry: { attempts: 1 } });
      const branch = run.branch(() => Promise.reject(new Error('branch')));
      await run.step('other', () => null);
      return [await fails.catch(String), await branch.catch(String)];
    });
    assert.deepEqual(got, ['StepError: step fails: no', 'Error: branch']);
  }),
);

test(
  'an unhandled rejection fails only its run',
  withEnv(async (env) => {
    const careless = workflow('careless', async (run) => {
      void Promise.reject(new Error('nobody looks'));
      await run.step('never', () => 1);
    });
    const healthy = workflow('healthy', async (run) => run.step('works', () => sleep(50, 'fine')));
    const runner = process.listeners('unhandledRejection'); // node:test would count the rejection as its own
    process.removeAllListeners('unhandledRejection');
    await env.worker([careless, healthy]);
    const [bad, good] = [await env.client.start(careless, null), await env.client.start(healthy, null)];
    await assert.rejects(bad.result('10s'), /nobody looks/);
    assert.equal(await good.result('10s'), 'fine');
    for (const listener of runner) process.on('unhandledRejection', listener);
  }),
);

test(
  'misuse is reported with its line',
  withEnv(async (env) => {
    const cases: Record<string, [(run: Run) => unknown, RegExp]> = {
      now: [() => Date.now(), /workflows\.test\.(ts|js):\d+: Date\.now .*run\.now/],
      date: [() => new Date(), /new Date\(\) .*run\.now/],
      random: [() => Math.random(), /Math\.random .*run\.random/],
      timer: [() => setTimeout(() => undefined, 1), /timers .*run\.sleep/],
      fetch: [() => fetch('http://127.0.0.1:1'), /fetch .*in a step/],
      foreign: [() => new Promise(() => undefined), /promise that is not the SDK's, at .*workflows\.test\.(ts|js):\d+/],
      within: [(run) => run.step('outer', () => run.step('inner', () => 1)), /inside step outer, at .*workflows\.test/],
      clash: [
        (run) => Promise.all([run.step('same', () => 1), run.step('same', () => 2)]),
        /step name same is used by two calls at once, at .*workflows\.test/,
      ],
    };
    const misused = workflow('misused', async (run, name: string) => {
      await run.step('before', () => null);
      await cases[name]?.[0](run);
    });
    await env.worker([misused]);
    for (const [name, [, want]] of Object.entries(cases)) {
      await assert.rejects((await env.client.start(misused, name)).result('10s'), want, name);
    }
  }),
);

test(
  'schemas check inputs, results and signals',
  withEnv(async (env) => {
    const Order = z.object({ id: z.string(), count: z.number().int().default(1) });
    const order = workflow('order', { input: Order, output: z.string() }, async (run, o) => {
      const doubled = await run.step('double', () => o.count * 2, { schema: z.number() });
      return `${o.id} x ${doubled}`;
    });
    assert.equal(await env.run(order, { id: 'book', count: 2 }), 'book x 4');
    const bad = await env.client.start('order', { id: 7 });
    await assert.rejects(
      bad.result('10s'),
      (e) => e instanceof RunError && e.type === 'unreadable' && /id: /.test(e.message),
    );
  }),
);

test(
  'numbers beyond 2^53 are bigints from end to end',
  withEnv(async (env) => {
    const big = workflow('big', async (run, n: bigint) => run.step('add', () => n + 1n));
    assert.equal(await env.run(big, 9007199254740993n), 9007199254740994n);
    const nan = workflow('nan', async (run) => run.step('sum', () => ({ total: NaN }), { retry: { attempts: 1 } }));
    await assert.rejects(env.run(nan, null), /step sum: result: total is NaN/);
  }),
);

test(
  'errors, limits and cancellation',
  withEnv(async (env) => {
    const undone: string[] = [];
    const saga = workflow('saga', async (run) => {
      try {
        await run.signal('never', { limit: '1h' }).catch((e: unknown) => assert.ok(e instanceof TimedOut));
        await run.signal('never');
      } catch (e) {
        if (e instanceof Cancelled) await run.cleanup((clean) => clean.step('undo', () => undone.push('undo')));
        throw e;
      }
    });
    const run = await env.start(saga, null);
    await env.waits(run);
    await env.jump();
    await env.until(async () => (await run.get()).waitingFor === 'signal:never' && (await run.steps()).length === 2);
    await run.cancel();
    assert.equal((await run.wait('10s')).status, 'CANCELLED');
    assert.deepEqual(undone, ['undo']);
  }),
);
