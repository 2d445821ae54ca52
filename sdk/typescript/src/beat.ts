// A thread that beats while code keeps the event loop to itself, and reports such code with its stack.
//
// It shares memory with the event loop, which says when it last beat. It beats itself, by unary calls, while it is told
// nothing, for at most 10 minutes: a loop that never ends has to lose its lease. When the loop does not come round for some
// seconds, the thread interrupts it for a moment, and asks whose code runs.
import { writeSync } from 'node:fs';
import type { Debugger, Session as Inspector } from 'node:inspector/promises';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { Client } from '@grpc/grpc-js';
import { HeartbeatRequest, WorkerServiceDefinition as SERVICE } from './v1/kagzi/v1/worker.js';
import { BlockedCode } from './v1/kagzi/v1/workflow.js';
import { cleanText, monotonic, wireTime } from './convert.js';
import type { Log } from './log.js';
import type { Endpoint } from './profile.js';
import { WHOSE_CODE } from './scope.js';
import { dial, metadata, unary } from './wire.js';

const { heartbeat } = SERVICE.methods;
const AT_MOST = 600_000;
const BLOCKED_AFTER = 5000;
const STACK = 4 << 10;
/** Milliseconds for which the main thread is waited for: a native function cannot be interrupted. */
const PAUSE = 20_000;

/** What the shared memory says, as indexes of numbers: monotonic times in milliseconds. */
enum At {
  /** The event loop beat. */
  BEATEN,
  /** The thread's last beat that the server accepted was sent. */
  CONFIRMED,
  INTERVAL,
  ACTIVE,
  /** Since when code of runs may run; 0 if none does. */
  RUNNING,
  COUNT,
}

interface Start {
  kagziBeat: { memory: SharedArrayBuffer; endpoint: Endpoint };
}

/** The thread, as the connection of the worker sees it. */
export class BeatThread {
  readonly #memory = new SharedArrayBuffer(At.COUNT * Float64Array.BYTES_PER_ELEMENT);
  readonly #numbers = new Float64Array(this.#memory);
  #thread: Worker | undefined;
  #told = '';

  constructor(
    private readonly endpoint: Endpoint,
    private readonly log: Log,
  ) {}

  start(): void {
    const start: Start = { kagziBeat: { memory: this.#memory, endpoint: this.endpoint } };
    const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 };
    this.#thread = new Worker(new URL(import.meta.url), { workerData: start, resourceLimits, execArgv: [] });
    this.#thread.on('message', (text: string) => this.log.warn(text));
    this.#thread.on('error', (e) => this.log.warn(`the thread of heartbeats has ended: ${e.message}`));
    this.#thread.unref();
  }

  /** Tells of a beat of the event loop. */
  beaten(workerId: string, active: number, interval: number): void {
    this.#numbers[At.ACTIVE] = active;
    this.#numbers[At.INTERVAL] = interval;
    this.#numbers[At.BEATEN] = monotonic();
    if (this.#told !== workerId) this.#thread?.postMessage((this.#told = workerId));
  }

  /** Returns the monotonic time of the thread's last accepted beat; 0 if there is none. */
  confirmed(): number {
    return this.#numbers[At.CONFIRMED] as number;
  }

  /** Notes that code of runs may run until leave is called. */
  enter(): void {
    this.#numbers[At.RUNNING] = monotonic();
  }

  /** Notes that no code of a run runs. */
  leave(): void {
    this.#numbers[At.RUNNING] = 0;
  }

  wasLate(ms: number, lease: number): void {
    const text = `a heartbeat came ${(ms / 1000).toFixed(1)} s late: code kept the event loop to itself, and with it all runs of this worker`;
    this.log.warn(`${text}; a thread keeps the leases of ${lease / 1000} s for at most ${AT_MOST / 60_000} minutes`);
  }

  stop(): void {
    void this.#thread?.terminate();
  }
}

class Beater {
  readonly #numbers: Float64Array;
  #client: Client | undefined;
  #workerId = '';
  #beat = 0;
  /** Since when the code runs that was looked at, and what of it is reported for as long as it does. */
  #seen = 0;
  #blocked: BlockedCode | undefined;
  /** It was not sent yet. */
  #found = false;
  #looking = false;

  constructor(
    memory: SharedArrayBuffer,
    private readonly endpoint: Endpoint,
  ) {
    this.#numbers = new Float64Array(memory);
    parentPort?.on('message', (workerId: string) => (this.#workerId = workerId));
    void this.#watch();
  }

  async #watch(): Promise<void> {
    for (;;) {
      const interval = this.#numbers[At.INTERVAL] as number;
      await new Promise((done) => setTimeout(done, Math.min(Math.max(interval / 10, 20), 1000)));
      const now = monotonic();
      const told = this.#numbers[At.BEATEN] as number;
      if (told === 0) continue; // it is not registered yet
      const silent = now - Math.max(told, this.#beat) > 1.1 * interval;
      this.#look(now);
      if ((silent || this.#found) && now - told < AT_MOST) await this.#send();
    }
  }

  async #send(): Promise<void> {
    const sent = (this.#beat = monotonic());
    this.#found = false;
    const request = HeartbeatRequest.create({
      workerId: this.#workerId,
      activeCount: this.#numbers[At.ACTIVE],
      blocked: this.#blocked && [this.#blocked],
    });
    try {
      this.#client ??= await dial(this.endpoint);
      const answer = await unary(this.#client, SERVICE, heartbeat, request, metadata(this.endpoint), 5000);
      if (answer.accepted) this.#numbers[At.CONFIRMED] = sent;
    } catch {
      // the next one may reach the server; if none does, the lease is over, as it should be
    }
  }

  /** Looks for code of a run that has run for some seconds. */
  #look(now: number): void {
    const since = this.#numbers[At.RUNNING] as number;
    if (since !== this.#seen) this.#blocked = undefined;
    if (this.#looking || since === 0 || now - since < BLOCKED_AFTER || since === this.#seen) return;
    this.#looking = true;
    void whatRuns().then((found) => {
      this.#looking = false;
      if (!found) return; // it is in native code, and is looked at again
      this.#seen = since;
      if (found.runId && this.#numbers[At.RUNNING] === since) this.#report(found.runId, found.stack, now - since);
    });
  }

  #report(runId: string, stack: string, ms: number): void {
    const text = cleanText(stack, STACK);
    const took = `has blocked for ${(ms / 1000).toFixed(0)} s outside of SDK calls, and with it all runs of this worker`;
    // What a thread writes to process.stderr waits for the main thread.
    writeSync(2, `kagzi: workflow code of run ${runId} ${took}; do the work in a step. Stack:\n${text}\n`);
    this.#blocked = BlockedCode.create({ runId, since: wireTime(Date.now() - ms), stack: text });
    this.#found = true;
  }
}

type Evaluated = Debugger.EvaluateOnCallFrameReturnType;

/** Interrupts the main thread for a moment; returns the run whose code runs there, empty for none, and the stack. */
async function whatRuns(): Promise<{ runId: string; stack: string } | undefined> {
  let inspector: Inspector | undefined;
  try {
    const { Session } = await import('node:inspector/promises'); // not every runtime has it
    inspector = new Session();
    const connected = inspector;
    connected.connectToMainThread();
    await connected.post('Debugger.enable');
    const paused = new Promise<Debugger.CallFrame[]>((resolve) => {
      connected.once('Debugger.paused', ({ params }) => resolve(params.callFrames));
    });
    await connected.post('Debugger.pause');
    const waited = new Promise<Debugger.CallFrame[]>((resolve) => setTimeout(() => resolve([]), PAUSE));
    const frames = await Promise.race([paused, waited]);
    const lines = frames.map(
      (f) => `    at ${f.functionName || '<anonymous>'} (${f.url}:${f.location.lineNumber + 1})`,
    );
    for (const { callFrameId } of frames) {
      // a frame of the runtime itself may not know the expression
      const asked = { callFrameId, expression: WHOSE_CODE, returnByValue: true, silent: true };
      const answer = (await connected.post('Debugger.evaluateOnCallFrame', asked)) as unknown as Evaluated;
      const runId: unknown = answer.result.value;
      if (typeof runId === 'string') return { runId, stack: lines.join('\n') };
    }
    return undefined;
  } catch {
    return undefined; // this runtime has no such inspector
  } finally {
    inspector?.disconnect(); // lets the thread go on
  }
}

const data = workerData as Start | undefined;
if (!isMainThread && data?.kagziBeat) new Beater(data.kagziBeat.memory, data.kagziBeat.endpoint);
