// Streams: the chunks of a stream are the signals of a Kagzi run, and of a next one when that is full.
import { type Client, type RunHandle, ServerError } from '@kagzi/sdk';
import { WorkflowWorldError } from '@workflow/errors';
import type { Streamer } from '@workflow/world';
import { randomUUID } from 'node:crypto';
import { told } from './errors.js';
import { TYPES, idFor, isOpen } from './types.js';
import { pack, unpack } from './values.js';

/** Bytes of a chunk, and of the chunks that one signal takes: base64 has to fit in a payload of 2 MiB. */
const MAX_CHUNK = 1 << 20;
const WRITTEN = 1000;
const FIRST_POLL = 20;
const LAST_POLL = 500;

/** Where a chunk is: its run, the signal before its own, and its place there. */
interface Place {
  run: number;
  sequence: number;
  skip: number;
  /** Of the chunk in the stream. */
  index: number;
}

interface Chunk extends Place {
  data: Uint8Array;
}

const START: Place = { run: 0, sequence: 0, skip: 0, index: 0 };

function code(e: unknown): string {
  return e instanceof ServerError ? e.code : '';
}

/** Returns the streams of a world. */
export function createStreamer(client: Client, queue: string): Streamer {
  const written = new Map<string, { run: number; handle: RunHandle<unknown> }>();

  const open = (name: string, runId: string, run: number): Promise<RunHandle<unknown>> => {
    const id = `${idFor('stream', name)}/${run}`;
    return client.start(TYPES.stream, { name, runId }, { id, reuse: 'never', queue, tags: { run: runId } });
  };

  /** Lets a full run end, so that readers know that it gets no further chunk. */
  const leave = async (handle: RunHandle<unknown>): Promise<void> => {
    await handle.signal('moved', null, { id: 'moved' }).catch(async (e: unknown) => {
      if (code(e) === 'RESOURCE_EXHAUSTED')
        await handle.terminate('full'); // its code has not begun to wait
      else if (code(e) !== 'PRECONDITION_FAILED') throw e;
    });
  };

  const send = async (name: string, runId: string, signal: string, value: unknown): Promise<void> => {
    const id = `${signal}/${randomUUID()}`;
    for (;;) {
      const at = written.get(name) ?? { run: 0, handle: await open(name, runId, 0) };
      try {
        await at.handle.signal(signal, value, { id });
        written.set(name, at);
        for (const oldest of written.keys()) {
          if (written.size <= WRITTEN) break;
          written.delete(oldest);
        }
        return;
      } catch (e) {
        const full = code(e) === 'RESOURCE_EXHAUSTED' && (await has(at.handle));
        if (!full && code(e) !== 'PRECONDITION_FAILED') throw e;
        // A step that crashed after it closed the stream writes it all again; readers have ended.
        if (await has(at.handle, 'close')) return;
        const next = { run: at.run + 1, handle: await open(name, runId, at.run + 1) };
        if (full) await leave(at.handle);
        written.set(name, next);
      }
    }
  };

  /** Whether a run has a signal, or one of a name. */
  const has = async (handle: RunHandle<unknown>, name?: string): Promise<boolean> => {
    for await (const s of handle.signals({ pageSize: 1000 })) if (name === undefined || s.name === name) return true;
    return false;
  };

  const write = async (name: string, runId: string, chunks: readonly (string | Uint8Array)[]): Promise<void> => {
    let batch: Uint8Array[] = [];
    let size = 0;
    for (const one of chunks) {
      const chunk = typeof one === 'string' ? Buffer.from(one) : one;
      if (chunk.byteLength > MAX_CHUNK) {
        const message = `a chunk of stream ${name} has ${chunk.byteLength} bytes, at most ${MAX_CHUNK} are allowed`;
        throw new WorkflowWorldError(message, { status: 413 });
      }
      if (size + chunk.byteLength > MAX_CHUNK || batch.length === 1000) {
        await send(name, runId, 'chunk', pack(batch));
        [batch, size] = [[], 0];
      }
      batch.push(chunk);
      size += chunk.byteLength;
    }
    if (batch.length > 0) await send(name, runId, 'chunk', pack(batch));
  };

  /** Reads what there is from a place on. The place that it returns is that of the next chunk. */
  const read = async (name: string, from: Place): Promise<{ chunks: Chunk[]; next: Place; done: boolean }> => {
    const chunks: Chunk[] = [];
    let at = from;
    for (;;) {
      const run = await client.getById(`${idFor('stream', name)}/${at.run}`).catch((e: unknown) => {
        if (code(e) === 'NOT_FOUND') return undefined;
        throw e;
      });
      if (!run) return { chunks, next: at, done: false };
      for await (const s of client.run(run.runId).signals({ after: at.sequence, pageSize: 200 })) {
        if (s.sequence !== at.sequence + 1) return { chunks, next: at, done: false };
        if (s.name === 'close') return { chunks, next: at, done: true };
        const all = s.name === 'chunk' ? (unpack(s.value()) as Uint8Array[]) : [];
        for (const data of all.slice(at.skip)) {
          chunks.push({ ...at, data });
          at = { ...at, skip: at.skip + 1, index: at.index + 1 };
        }
        at = { ...at, sequence: s.sequence, skip: 0 };
      }
      // The status was read before the signals: of an ended run they were all.
      if (isOpen(run.status)) return { chunks, next: at, done: false };
      at = { ...START, run: at.run + 1, index: at.index };
    }
  };

  const info = async (name: string): Promise<{ tailIndex: number; done: boolean }> => {
    const { next, done } = await read(name, START);
    return { tailIndex: next.index - 1, done };
  };

  const live = (name: string, startIndex: number): ReadableStream<Uint8Array> => {
    let at = START;
    let first: number | undefined;
    let over = false;
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          first ??= startIndex < 0 ? Math.max(0, (await info(name)).tailIndex + 1 + startIndex) : startIndex;
          for (let wait = FIRST_POLL; !over; wait = Math.min(wait * 1.5, LAST_POLL)) {
            const { chunks, next, done } = await read(name, at);
            at = next;
            // An empty byte chunk is an error for byte streams, and says nothing.
            const fresh = chunks.filter((c) => c.index >= (first as number) && c.data.byteLength > 0);
            for (const chunk of fresh) controller.enqueue(chunk.data);
            if (done) controller.close();
            if (done || fresh.length > 0) return;
            await new Promise((ready) => setTimeout(ready, wait));
          }
        } catch (e) {
          if (!over) controller.error(e);
        }
      },
      cancel() {
        over = true;
      },
    });
  };

  return {
    writeToStream: told((name, runId, chunk) => write(name, runId, [chunk])),
    writeToStreamMulti: told(write),
    closeStream: told(async (name, runId) => {
      await send(name, runId, 'close', null);
      written.delete(name);
    }),
    readFromStream: (name, startIndex = 0) => Promise.resolve(live(name, startIndex)),
    listStreamsByRunId: told(async (runId) => {
      const names = new Set<string>();
      for await (const run of client.list({ workflowTypes: [TYPES.stream], tags: { run: runId }, pageSize: 1000 })) {
        names.add(((await client.get(run.runId)).input() as { name: string }).name);
      }
      return [...names].sort();
    }),
    getStreamChunks: told(async (name, _runId, { limit = 100, cursor } = {}) => {
      if (!(limit >= 1 && limit <= 1000))
        throw new WorkflowWorldError(`limit is ${limit}, want 1 to 1000`, { status: 400 });
      const { chunks, done } = await read(name, cursor === undefined ? START : placeOf(cursor));
      const data = chunks.slice(0, limit).map(({ index, data }) => ({ index, data }));
      const following = chunks[limit];
      return { data, hasMore: !!following, done, cursor: following ? cursorOf(following) : null };
    }),
    getStreamInfo: told(info),
  };
}

function cursorOf({ run, sequence, skip, index }: Place): string {
  return Buffer.from(JSON.stringify([run, sequence, skip, index])).toString('base64url');
}

function placeOf(cursor: string): Place {
  try {
    const numbers = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    const [run, sequence, skip, index] = numbers;
    const place = { run, sequence, skip, index } as Place;
    if (Object.values(place).every((n) => Number.isInteger(n) && n >= 0)) return place;
  } catch {
    // told below
  }
  throw new WorkflowWorldError('cursor is not one that getStreamChunks returned for this stream', { status: 400 });
}
