// Compresses files on a machine that may lose power at any time: each file is a run on a server on the same machine.
//
// node build/examples/pipeline.js work OUT     runs a worker that writes to the folder OUT
// node build/examples/pipeline.js add FILE...  starts a run for each file, and waits for the results
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Client, type Retry, type RunHandle, ServerError, serve, workflow } from '@kagzi/sdk';
import { isMain } from './main.js';

export interface Result {
  sha256: string;
  stored: string;
}

const retry: Retry = { attempts: -1, max: '60s' };

/** Returns the workflow that writes to a folder. */
export const compress = (out: string) =>
  workflow('file', { queue: 'files' }, async (run, file: string): Promise<Result> => {
    const hash = async (): Promise<string> => {
      const sha256 = createHash('sha256');
      await pipeline(createReadStream(file), sha256);
      return sha256.digest('hex');
    };
    const sha256 = await run.step('digest', hash, { retry });
    // Writes beside the place and then moves: a file that is there is whole, however often this runs.
    const store = async (): Promise<string> => {
      const place = join(out, `${sha256}.gz`);
      const part = join(out, `${sha256}.${process.pid}.part`);
      await pipeline(createReadStream(file), createGzip(), createWriteStream(part));
      await rename(part, place);
      return place;
    };
    return { sha256, stored: await run.step('store', store, { retry }) };
  });

/** Starts a run for each file in one commit. A file that has had its run gets no second one. */
export function add(client: Client, files: string[]): Promise<(RunHandle<Result> | ServerError)[]> {
  const paths = files.map((file) => resolve(file));
  return client.startMany(compress(''), paths, {}, (i) => {
    const { size, mtimeMs } = statSync(paths[i] ?? '');
    const mark = createHash('sha256').update(`${paths[i]} ${size} ${mtimeMs}`).digest('hex').slice(0, 24);
    return { id: `file:${mark}`, reuse: 'never' };
  });
}

if (isMain(import.meta.url)) {
  const [command, ...rest] = process.argv.slice(2);
  if (command === 'add') {
    const client = new Client();
    for (const run of await add(client, rest))
      console.log(run instanceof ServerError ? run.message : await run.result());
    client.close();
  } else await serve([compress(rest[0] ?? '.')]);
}
