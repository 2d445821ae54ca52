// `kagzi check` finds the open runs that a new build cannot continue; capsules are replayed without a server.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { ConfigError, type Divergence, Failed, RunError, replayCapsule, workflow } from '@kagzi/sdk';
import { type Env, findBinary } from '@kagzi/sdk/testing';
import { withEnv } from './env.js';

const OLD = `
import { serve, workflow } from '${import.meta.resolve('@kagzi/sdk')}';

const job = workflow('job', async (run, n) => {
  const got = await run.step('reserve', () => 'r');
  return got + (await run.signal('go'));
});
await serve([job]);
`;

const job = workflow<number, string>('job', async (run) => {
  const got = await run.step('reserve', () => 'r');
  return got + (await run.signal<string>('go'));
});

/** Calls a function with a folder of its own. */
async function inFolder<T>(fn: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'kagzi-replay-'));
  try {
    return await fn(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function check(env: Env, code: string, namespace = env.namespace) {
  return inFolder(async (folder) => {
    const app = join(folder, 'app.mjs');
    writeFileSync(app, code);
    const environment = { ...process.env };
    delete environment['KAGZI_CHECK'];
    const flags = ['check', '--address', env.server.address, '-n', namespace, '--', process.execPath, app];
    const options = { env: { ...environment, KAGZI_CONFIG: 'off' }, timeout: 60_000 };
    const run = promisify(execFile)(findBinary(), flags, options);
    return run.then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (e: unknown) => e as { code: number; stdout: string; stderr: string },
    );
  });
}

/** Starts a run of the old code, which waits for its signal when the worker stops. */
async function openRun(env: Env) {
  await env.worker([job]);
  const run = await env.client.start(job, 1);
  await env.waits(run);
  await env.stopWorkers();
  return run;
}

test(
  'check passes the code that the runs were started with',
  withEnv(async (env) => {
    await openRun(env);
    const got = await check(env, OLD);
    assert.equal(got.code, 0, got.stdout + got.stderr);
    const last = got.stdout.trimEnd().split('\n').at(-1);
    const counts = `checked 1 open runs of 1 workflow types in namespace ${env.namespace}`;
    assert.equal(last, `${counts}: 0 diverge, 0 came to no end`);
  }),
);

for (const [old, changed, said] of [
  ["'reserve'", "'book'", 'at step reserve: expected step reserve, got step book'],
  [
    "await run.step('reserve', () => 'r')",
    "'r'",
    'at step reserve: expected step reserve, got nothing beyond wait for a signal go',
  ],
  [
    "run.step('reserve', () => 'r')",
    "run.signal('reserve')",
    'at step reserve: expected step reserve, got wait for a signal reserve',
  ],
  ["(await run.signal('go'))", "'x'", 'at step go: expected wait for a signal go, got the run completed with "rx"'],
  ['const got', "run.step('bad name', () => 1); const got", 'expected a run that the SDK accepts'],
  [
    'const got',
    "const input = run; Promise.reject(new Error('stray')); const got",
    'at step go: expected wait for a signal go, got the run failed: stray',
  ],
] as const) {
  test(
    `check finds a run that diverges ${said}`,
    withEnv(async (env) => {
      const run = await openRun(env);
      const code = OLD.replace(old, changed);
      assert.notEqual(code, OLD);
      const got = await check(env, code);
      assert.equal(got.code, 1, got.stdout + got.stderr);
      assert.ok(got.stdout.includes(`run ${run.id} of type job diverges`), got.stdout + got.stderr);
      assert.ok(got.stdout.includes(said), got.stdout);
      assert.ok(got.stdout.includes('1 diverge, 0 came to no end'), got.stdout);
      const steps = await run.steps();
      assert.deepEqual(
        steps.map((s) => s.name),
        ['reserve', 'go'],
      );
    }),
  );
}

test(
  'check reads the input by the schema of the new code',
  withEnv(async (env) => {
    await openRun(env);
    const schema = `{ '~standard': { version: 1, vendor: 'test',
      validate: (v) => typeof v === 'string' ? { value: v } : { issues: [{ message: 'want a text' }] } } }`;
    const got = await check(env, OLD.replace("'job', async", `'job', { input: ${schema} }, async`));
    assert.equal(got.code, 1, got.stdout + got.stderr);
    assert.ok(got.stdout.includes('expected a value that the code can read'), got.stdout);
    assert.ok(got.stdout.includes('want a text'), got.stdout);
  }),
);

test(
  'check says that a namespace does not exist',
  withEnv(async (env) => {
    const got = await check(env, OLD, 'misspelt');
    assert.notEqual(got.code, 0);
    assert.ok(got.stderr.includes('there is no namespace misspelt, so nothing was checked'), got.stderr);
  }),
);

const ran: string[] = [];

const kid = workflow<number, number>('kid', (_, n) => Promise.resolve(n));

const partsOf = async (run: Parameters<typeof job.fn>[0], n: number): Promise<unknown[]> => {
  const parts = await run.map([...Array(n).keys()], (branch, i) =>
    branch.step(`part-${i}`, () => {
      ran.push('part');
      return i;
    }),
  );
  await run.sleep('nap', 50);
  run.log.info('this line is not written in a replay');
  const late = run.now().getFullYear() > 2000;
  return [...parts, run.patched('new'), late, run.uuid().length, await run.child('kid', kid, 2)];
};

const order = workflow<number, unknown[]>('order', partsOf);
const otherEnd = workflow<number, unknown[]>('order', async (run, n) => (await partsOf(run, n)).slice(1));
const otherStep = workflow<number, unknown[]>('order', async (run, n) => {
  await run.step('more', () => ran.push('more'));
  return partsOf(run, n);
});

test(
  'a capsule is replayed without a server',
  withEnv((env) =>
    inFolder(async (folder) => {
      await env.worker([order, kid]);
      const run = await env.start(order, 3);
      assert.deepEqual(await env.result(run), [0, 1, 2, true, true, 36, 2]);
      const file = join(folder, 'order.zip');
      await run.export(file);
      ran.length = 0;
      await replayCapsule(file, order);
      await assert.rejects(replayCapsule(file, otherEnd), (e: Divergence) => {
        assert.match(e.message, /expected the run to have completed with .*got the run completed/);
        assert.deepEqual([e.runId, e.workflowType, e.step], [run.id, 'order', '']);
        return true;
      });
      await assert.rejects(replayCapsule(file, otherStep), /expected step part-0 in branch 1, got step more/);
      for await (const { runId } of env.client.list({ parentRunId: run.id })) await replayCapsule(file, kid, { runId });
      assert.deepEqual(ran, []);
      await assert.rejects(replayCapsule(file, order, { runId: 'x' }), /has no run "x"/);
      await assert.rejects(replayCapsule(import.meta.filename, order), ConfigError);
      await run.export(file, { redactPayloads: true });
      await assert.rejects(replayCapsule(file, order), /without payloads/);
    }),
  ),
);

test(
  'a capsule of a failed run is replayed',
  withEnv((env) =>
    inFolder(async (folder) => {
      const fails = workflow('fails', async (run) => {
        await run.step('s', () => 1);
        throw new Failed('declined', { type: 'card' });
      });
      const passes = workflow('fails', (run) => run.step('s', () => 1));
      const run = await env.start(fails, null);
      await assert.rejects(run.result('20s'), RunError);
      const file = join(folder, 'failed.zip');
      await run.export(file);
      await replayCapsule(file, fails);
      await assert.rejects(
        replayCapsule(file, passes),
        /expected the run to have failed: declined, got the run completed with 1/,
      );
    }),
  ),
);

test(
  'an exported run is imported, under a new id and once for each request id',
  withEnv((env) =>
    inFolder(async (folder) => {
      const run = await openRun(env);
      const file = join(folder, 'job.zip');
      await run.export(file);
      const imported = await env.client.importRun(file, 'import-1');
      assert.notEqual(imported.id, run.id);
      const details = await imported.get();
      assert.deepEqual([details.workflowType, details.paused, details.input()], ['job', true, 1]);
      const again = await env.client.importRun(file, 'import-1');
      assert.deepEqual([again.id, again.existed], [imported.id, true]);
      writeFileSync(file, 'no zip file');
      await assert.rejects(env.client.importRun(file), /INVALID_ARGUMENT/);
      await assert.rejects(env.client.importRun(join(folder, 'gone.zip')), /ENOENT/);
    }),
  ),
);
