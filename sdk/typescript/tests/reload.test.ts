// node --watch: a change of the program's files ends the worker in order, and then starts the next.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Env, Server } from '@kagzi/sdk/testing';

/** A program whose first step waits until a file is there. */
const program = (version: number): string => `
  import { appendFileSync, existsSync } from 'node:fs';
  import { setTimeout as pause } from 'node:timers/promises';
  import { serve, workflow } from '@kagzi/sdk';
  const reloaded = workflow('reloaded', async (run, folder) => {
    const first = await run.step('first', async () => {
      appendFileSync(folder + '/began', 'x');
      while (!existsSync(folder + '/go')) await pause(20);
      return ${version};
    });
    await run.signal('on');
    return [first, await run.step('second', () => ${version})];
  });
  await serve([reloaded], { drainTimeout: '60s' });
  console.error('version ${version} ended');`;

test('node --watch drains the worker before it starts the next', async () => {
  // In this package, so that the program finds it.
  const folder = mkdtempSync(join(import.meta.dirname, '..', 'reload-'));
  const server = await Server.start();
  const env = new Env(server);
  const file = join(folder, 'worker.mjs');
  writeFileSync(file, program(1));
  const variables = { KAGZI_ADDRESS: server.address, KAGZI_NAMESPACE: env.namespace, KAGZI_CONFIG: 'off' };
  const watch = spawn(process.execPath, ['--watch', file], { env: { ...process.env, ...variables } });
  let said = '';
  watch.stderr.on('data', (text: Buffer) => (said += text.toString()));
  const says = (text: string): Promise<boolean> => env.until(() => said.includes(text), '60s');
  try {
    const run = await env.client.start<[number, number]>('reloaded', folder);
    await env.until(() => existsSync(join(folder, 'began')), '60s');
    let written = -Infinity;
    await env.until(() => {
      // Until it is noticed: the file may not be watched yet. Node waits until nothing has changed for 200 ms.
      if (performance.now() > written + 2_000) {
        writeFileSync(file, program(2));
        written = performance.now();
      }
      return said.includes('draining: 1 active runs');
    }, '60s');
    assert.equal(said.split(' registered: ').length - 1, 1, said);
    writeFileSync(join(folder, 'go'), '');
    await says('version 1 ended');
    assert.doesNotMatch(said, /asked by the server/); // it was the end of the process that was asked for
    await env.until(() => said.split(' registered: ').length > 2, '60s');
    await run.signal('on', null);
    assert.deepEqual(await run.result('60s'), [1, 2], said);
    assert.equal(readFileSync(join(folder, 'began'), 'utf8'), 'x');
    assert.deepEqual(
      (await run.steps()).map((s) => s.attemptNumber),
      [1, 1, 1],
    );
  } finally {
    watch.kill('SIGTERM'); // it ends the worker, too
    await once(watch, 'exit');
    await env.close();
    await server.close();
    rmSync(folder, { recursive: true });
  }
});
