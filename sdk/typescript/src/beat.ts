// A thread that beats while code keeps the event loop to itself, and reports such code with its stack.
//
// It shares memory with the event loop, which says when it last beat. It beats itself, by unary calls, while it is told
// nothing, for at most 10 minutes: a loop that never ends has to lose its lease.
import { Session as Inspector } from 'node:inspector/promises';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { Client } from '@grpc/grpc-js';
import { HeartbeatRequest, WorkerServiceDefinition } from './v1/kagzi/v1/worker.js';
import { BlockedCode } from './v1/kagzi/v1/workflow.js';
import { cleanText, monotonic, wireTime } from './convert.js';
import type { Log } from './log.js';
import type { Endpoint } from './profile.js';
import { dial, metadata, unary } from './wire.js';

const AT_MOST = 600_000;
const BLOCKED_AFTER = 5000;
const STACK = 4 << 10;
const RUN_ID = 36;

/** What the shared memory says, as indexes of numbers: monotonic times in milliseconds. */
enum At {
  /** The event loop beat. */
  BEATEN,
  /** The thread's last beat that the server accepted was sent. */
  CONFIRMED,
  INTERVAL,
  ACTIVE,
  /** Since when the code of a run runs; 0 if none does. */
  RUNNING,
  COUNT,
}

interface Shared {
  numbers: Float64Array;
  /** Id of the run whose code runs. */
  runId: Uint8Array;
}

function view(memory: SharedArrayBuffer): Shared {
  const size = At.COUNT * Float64Array.BYTES_PER_ELEMENT;
  return { numbers: new Float64Array(memory, 0, At.COUNT), runId: new Uint8Array(memory, size, RUN_ID) };
}

interface Start {
  kagziBeat: { memory: SharedArrayBuffer; endpoint: Endpoint };
}

/** The thread, as the connection of the worker sees it. */
export class BeatThread {
  readonly #memory = new SharedArrayBuffer(At.COUNT * Float64Array.BYTES_PER_ELEMENT + RUN_ID);
  readonly #shared = view(this.#memory);
  #thread: Worker | undefined;
  #told = '';

  constructor(
    private readonly endpoint: Endpoint,
    private readonly log: Log,
  ) {}

  /** Tells of a beat of the event loop. */
  beaten(workerId: string, active: number, interval: number): void {
    const { numbers } = this.#shared;
    numbers[At.ACTIVE] = active;
    numbers[At.INTERVAL] = interval;
    numbers[At.BEATEN] = monotonic();
    if (!this.#thread) {
      const start: Start = { kagziBeat: { memory: this.#memory, endpoint: this.endpoint } };
      const resourceLimits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 };
      this.#thread = new Worker(new URL(import.meta.url), { workerData: start, resourceLimits, execArgv: [] });
      this.#thread.on('message', (text: string) => this.log.warn(text));
      this.#thread.on('error', (e) => this.log.warn(`the thread of heartbeats has ended: ${e.message}`));
      this.#thread.unref();
    }
    if (this.#told !== workerId) this.#thread.postMessage((this.#told = workerId));
  }

  /** Returns the monotonic time of the thread's last accepted beat; 0 if there is none. */
  confirmed(): number {
    return this.#shared.numbers[At.CONFIRMED] as number;
  }

  /** Notes that code of a run begins to run. */
  enter(runId: string): void {
    const { numbers } = this.#shared;
    for (let i = 0; i < RUN_ID; i++) this.#shared.runId[i] = runId.charCodeAt(i);
    numbers[At.RUNNING] = monotonic();
  }

  /** Notes that no code of a run runs. */
  leave(): void {
    this.#shared.numbers[At.RUNNING] = 0;
  }

  /** Logs a heartbeat that came late. */
  wasLate(ms: number, lease: number): void {
    const text = `a heartbeat came ${(ms / 1000).toFixed(1)} s late: code kept the event loop to itself, and with it all runs of this worker`;
    this.log.warn(`${text}; a thread keeps the leases of ${lease / 1000} s for at most ${AT_MOST / 60_000} minutes`);
  }

  /** Ends the thread. */
  stop(): void {
    void this.#thread?.terminate();
  }
}

/** What the thread does. */
class Beater {
  readonly #shared: Shared;
  #client: Client | undefined;
  #workerId = '';
  #beat = 0;
  #reported = 0;

  constructor(
    memory: SharedArrayBuffer,
    private readonly endpoint: Endpoint,
  ) {
    this.#shared = view(memory);
    parentPort?.on('message', (workerId: string) => (this.#workerId = workerId));
    void this.#watch();
  }

  async #watch(): Promise<void> {
    for (;;) {
      const interval = this.#shared.numbers[At.INTERVAL] as number;
      await new Promise((done) => setTimeout(done, Math.min(Math.max(interval / 10, 20), 1000)));
      const now = monotonic();
      const told = this.#shared.numbers[At.BEATEN] as number;
      const silent = now - Math.max(told, this.#beat) > 1.1 * interval;
      const blocked = await this.#blocked(now);
      if ((silent || blocked) && now - told < AT_MOST) await this.#send(blocked);
    }
  }

  async #send(blocked: BlockedCode | undefined): Promise<void> {
    const sent = (this.#beat = monotonic());
    const request = HeartbeatRequest.create({
      workerId: this.#workerId,
      activeCount: this.#shared.numbers[At.ACTIVE],
      blocked: blocked ? [blocked] : [],
    });
    const service = WorkerServiceDefinition;
    try {
      this.#client ??= await dial(this.endpoint);
      const answer = await unary(
        this.#client,
        service,
        service.methods.heartbeat,
        request,
        metadata(this.endpoint),
        5000,
      );
      if (answer.accepted) this.#shared.numbers[At.CONFIRMED] = sent;
    } catch {
      this.#reported = 0; // the next one may reach the server; if none does, the lease is over, as it should be
    }
  }

  /** Returns code that has run for some seconds, once for each time that it does, and logs it. */
  async #blocked(now: number): Promise<BlockedCode | undefined> {
    const since = this.#shared.numbers[At.RUNNING] as number;
    if (since === 0 || now - since < BLOCKED_AFTER || since === this.#reported) return undefined;
    this.#reported = since;
    const runId = Buffer.from(this.#shared.runId).toString('latin1');
    const stack = cleanText(await stackOfMain(), STACK);
    const took = `has blocked for ${((now - since) / 1000).toFixed(0)} s outside of SDK calls, and with it all runs of this worker`;
    process.stderr.write(`kagzi: workflow code of run ${runId} ${took}; do the work in a step. Stack:\n${stack}\n`);
    return BlockedCode.create({ runId, since: wireTime(Date.now() - (now - since)), stack });
  }
}

/** Interrupts the main thread for a moment, and returns its stack. */
async function stackOfMain(): Promise<string> {
  const inspector = new Inspector();
  try {
    inspector.connectToMainThread();
    await inspector.post('Debugger.enable');
    const stack = new Promise<string>((resolve) => {
      inspector.once('Debugger.paused', ({ params }) => {
        const frames = params.callFrames.map(
          (f) => `    at ${f.functionName || '<anonymous>'} (${f.url}:${f.location.lineNumber + 1})`,
        );
        resolve(frames.join('\n'));
      });
    });
    await inspector.post('Debugger.pause');
    const waited = new Promise<string>((resolve) => setTimeout(() => resolve(''), 1000));
    const found = await Promise.race([stack, waited]);
    await inspector.post('Debugger.resume').catch(() => undefined); // it was not paused
    return found || 'the stack cannot be read: the code is not in JavaScript';
  } catch (e) {
    return `the stack cannot be read: ${String(e)}`;
  } finally {
    inspector.disconnect();
  }
}

const data = workerData as Start | undefined;
if (!isMainThread && data?.kagziBeat) new Beater(data.kagziBeat.memory, data.kagziBeat.endpoint);
