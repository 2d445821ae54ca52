// Code that blocks the event loop: of steps, and of workflows.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type RunHandle, ServerError, workflow } from '@kagzi/sdk';
import { Env, Server } from '@kagzi/sdk/testing';

test('a step that blocks the event loop keeps its lease', async () => {
  const server = await Server.start({ lease: '5s' });
  const env = new Env(server);
  try {
    let bodies = 0;
    const blocks = workflow('blocks', async (run) =>
      run.step('block', async () => {
        bodies++;
        await new Promise((done) => setTimeout(done, 2000)); // the thread of heartbeats starts meanwhile
        for (const end = performance.now() + 11_000; performance.now() < end;);
        return 'kept';
      }),
    );
    assert.equal(await (await env.start(blocks, null)).result('60s'), 'kept');
    assert.equal(bodies, 1);
  } finally {
    await env.close();
    await server.close();
  }
});

/** Blocks until a file is there or its parent is gone, after others that were started with it have begun. */
const blocks = workflow('blocks', async (_, file: string) => {
  for (let hops = 0; hops < 5; hops++) await Promise.resolve();
  for (const parent = process.ppid; file && !existsSync(file) && process.ppid === parent;);
  return file;
});

test('workflow code that blocks is reported for its own run', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kagzi-blocked-'));
  const server = await Server.start({ lease: '10s' });
  const env = new Env(server);
  const file = join(folder, 'go on');
  const runs = (await env.client.startMany(blocks, [file, ...Array<string>(9).fill('')])).map((run) => {
    if (run instanceof ServerError) throw run;
    return run;
  });
  const code = `
    import { existsSync } from 'node:fs';
    import { serve, workflow } from '@kagzi/sdk';
    await serve([workflow('blocks', ${blocks.fn.toString()})], { drainTimeout: 0 });`;
  const variables = { KAGZI_ADDRESS: server.address, KAGZI_NAMESPACE: env.namespace, KAGZI_CONFIG: 'off' };
  const worker = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    env: { ...process.env, ...variables },
    cwd: import.meta.dirname,
  });
  let said = '';
  worker.stderr.on('data', (text: Buffer) => (said += text.toString()));
  try {
    const reports = async (run: RunHandle<string> | undefined): Promise<boolean> =>
      (await run?.explain())?.summary.includes('blocked outside of SDK calls') ?? false;
    const [first, ...others] = runs;
    await env.until(() => reports(first), '60s');
    for (const other of others) assert.equal(await reports(other), false, said);
    assert.match(said, new RegExp(`workflow code of run ${first?.id ?? ''} has blocked [^]*\n +at .*:\\d+\\)`));
    writeFileSync(file, '');
    assert.equal(await first?.result('60s'), file);
  } finally {
    worker.kill('SIGKILL');
    await env.close();
    await server.close();
    rmSync(folder, { recursive: true });
  }
});
