// Tests of workflows on the real server.
//
// The server's binary is the one in KAGZI_BIN; else `kagzi` in the repository that holds this package, or on the PATH; else
// it is built once with Go from that repository.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { type Interface, createInterface } from 'node:readline';
import { Client } from './client.js';
import type { RunHandle } from './handle.js';
import { type Duration, millis } from './convert.js';
import { Dev } from './dev.js';
import { ConfigError, KagziError } from './errors.js';
import { textLog } from './log.js';
import type { WorkerOptions, StartOptions } from './options.js';
import type { StepFunction } from './step.js';
import { Worker } from './worker.js';
import type { Workflow } from './workflow.js';

type AnyWorkflow = Workflow<never, unknown>;

/** Returns the path of the server's binary, which is built if need be. Throws a ConfigError if there is none. */
export function findBinary(): string {
  const named = process.env['KAGZI_BIN'];
  if (named) {
    if (!existsSync(named)) throw new ConfigError(`KAGZI_BIN is ${JSON.stringify(named)}, which does not exist`);
    return named;
  }
  const paths = (process.env['PATH'] ?? '').split(delimiter);
  const found = paths.map((folder) => join(folder, 'kagzi')).find((path) => existsSync(path));
  const root = repository();
  if (!root || !paths.some((folder) => existsSync(join(folder, 'go')))) {
    if (found) return found;
    throw new ConfigError('no kagzi server to test on: set KAGZI_BIN to its binary');
  }
  const folder = join(tmpdir(), `kagzi-test-${process.getuid?.() ?? 0}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const built = join(folder, 'kagzi');
  const env = { ...process.env, CGO_ENABLED: '0' };
  execFileSync('go', ['build', '-trimpath', '-o', built, '.'], { cwd: root, env, stdio: 'inherit' });
  return built;
}

/** Returns the Kagzi repository that holds this package, if one does. */
function repository(): string | undefined {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, 'go.mod')) && existsSync(join(folder, 'proto', 'kagzi'))) return folder;
  }
  return undefined;
}

/** Options of a test server. */
export interface ServerOptions {
  /** Time that it keeps runs of a silent worker (3 s). */
  lease?: Duration;
  /** Its clock can be set ahead, and nothing but the clock ends a lease: it does not notice dead workers (false). */
  clock?: boolean;
  /** To listen on (a free port of the loopback interface). */
  address?: string;
  /** Folder of the database (a temporary one). */
  folder?: string;
  /** Address of the database, as of `kagzi server --db` (a file in the folder). */
  database?: string;
  /** Further options of `kagzi server`. */
  flags?: readonly string[];
}

/** A private server on a free port, with a database of its own. */
export class Server {
  private constructor(
    /** host:port. */
    readonly address: string,
    readonly process: ChildProcess,
    private readonly lines: AsyncIterator<string>,
    private readonly reader: Interface,
    private readonly folder: string,
    private readonly clock: boolean,
  ) {}

  /** Starts a server. */
  static async start(o: ServerOptions = {}): Promise<Server> {
    const lease = millis(o.lease ?? 3000, 'lease');
    const folder = o.folder ?? mkdtempSync(join(tmpdir(), 'kagzi-'));
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('KAGZI_')));
    if (o.clock) env['KAGZI_TEST_CLOCK'] = '1';
    const flags = ['server', '--config', 'off', '--data-dir', folder, '--listen', o.address ?? '127.0.0.1:0'];
    flags.push('--http', 'off', '--log-level', 'warn', '--auto-namespaces', '--worker-lease', `${lease}ms`);
    flags.push('--heartbeat-interval', `${Math.round(lease / 3)}ms`, ...(o.database ? ['--db', o.database] : []));
    const child = spawn(findBinary(), [...flags, ...(o.flags ?? [])], { env, stdio: ['pipe', 'pipe', 'pipe'] });
    let said = '';
    child.stderr.on('data', (text: Buffer) => (said = (said + text.toString()).slice(-2000)));
    const reader = createInterface(child.stdout);
    const lines = reader[Symbol.asyncIterator]();
    let address = '';
    for (let line = await lines.next(); !line.done; line = await lines.next()) {
      const [word, value] = line.value.trim().split(/\s+/);
      if (word === 'address' && value) address = value;
      if (word === 'next') break;
    }
    if (!address) throw new KagziError(`the server did not start: ${said}`);
    return new Server(address, child, lines, reader, o.folder ? '' : folder, o.clock ?? false);
  }

  /** Sets the clock ahead, and returns the server's time. Rejects if the server has no such clock. */
  async passTime(d: Duration = 0): Promise<Date> {
    if (!this.clock) throw new KagziError('this server has no clock of tests: Server.start({ clock: true })');
    this.process.stdin?.write(`pass ${millis(d, 'time')}ms\n`);
    const line = await this.lines.next();
    const [, kind, said] = /^(\S+) (.*)$/.exec(line.done ? '' : line.value) ?? [];
    if (kind !== 'now' || !said) throw new KagziError(said ?? 'the server has ended');
    return new Date(said);
  }

  /** Ends the server, with kill at once, as a crash would, and deletes its temporary folder. */
  async close(kill = false): Promise<void> {
    const ended = new Promise((done) => this.process.once('exit', done));
    if (this.process.exitCode === null && this.process.kill(kill ? 'SIGKILL' : 'SIGTERM')) await ended;
    this.reader.close();
    this.process.stdin?.destroy();
    if (this.folder) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Options of a start in a test. */
export interface TestStartOptions extends StartOptions {
  /** Give the run back at every result, so that each await is replayed (false). */
  alwaysSuspend?: boolean;
}

/** A namespace of its own on a server, with a client, and workers in this process. Misuse in workflow code is reported. */
export class Env {
  readonly namespace = `t-${randomUUID().slice(0, 13)}`;
  readonly client: Client;
  readonly #workers: { worker: Worker; ended: Promise<unknown> }[] = [];
  readonly #replaced = new Map<string, StepFunction<unknown>>();

  constructor(readonly server: Server) {
    this.client = new Client({ profile: 'off', address: server.address, namespace: this.namespace });
  }

  /** Makes every step with a name, as written in the workflow, run other code. */
  replace(name: string, fn: StepFunction<unknown>): void {
    this.#replaced.set(name, fn);
    for (const { worker } of this.#workers) worker.replaced.set(name, fn);
  }

  /** Starts a worker, and returns it when it is registered. */
  async worker(workflows: readonly AnyWorkflow[], options: WorkerOptions = {}): Promise<Worker> {
    const own = { profile: 'off', address: this.server.address, namespace: this.namespace, handleSignals: false };
    const worker = new Worker(workflows, { log: textLog('error'), drainTimeout: '5s', ...own, ...options });
    for (const [name, fn] of this.#replaced) worker.replaced.set(name, fn);
    worker.dev = Dev.install();
    const ended = worker.run().catch((e: unknown) => e);
    const failure = await Promise.race([worker.registered, ended]);
    if (failure) throw failure;
    this.#workers.push({ worker, ended });
    return worker;
  }

  /** Starts a run, and a worker for it if there is none. */
  async start<In, Out>(workflow: Workflow<In, Out>, input: In, o: TestStartOptions = {}): Promise<RunHandle<Out>> {
    const { alwaysSuspend = false, ...start } = o;
    const fits = ({ worker }: { worker: Worker }): boolean =>
      worker.serves(workflow.name) && worker.options.alwaysSuspend === alwaysSuspend;
    if (!this.#workers.some(fits)) {
      await this.stopWorkers();
      await this.worker([workflow], { alwaysSuspend });
    }
    return this.client.start(workflow, input, start);
  }

  /** Runs a workflow to its end and returns its result. Time jumps: see result. */
  async run<In, Out>(workflow: Workflow<In, Out>, input: In, options: TestStartOptions = {}): Promise<Out> {
    return this.result(await this.start(workflow, input, options));
  }

  /**
   * Returns the result of a run. While all open runs of the namespace wait, time jumps to what comes first, so that a sleep
   * of 30 days takes milliseconds. Times within the worker, such as the timeout of a step, do not jump.
   */
  async result<Out>(run: RunHandle<Out>, timeout: Duration = '30s'): Promise<Out> {
    const until = performance.now() + millis(timeout, 'timeout');
    for (;;) {
      const d = await run.wait(20).catch((e: unknown) => e as Error);
      if (!(d instanceof Error)) return run.result();
      if (performance.now() > until) {
        throw new KagziError(`run ${run.id} has not ended: ${(await run.explain()).summary}`);
      }
      await this.jump();
    }
  }

  /** Lets time jump to what comes first, if all open runs of the namespace wait; false if they do not. */
  async jump(): Promise<boolean> {
    const now = await this.server.passTime();
    let first = Infinity;
    for await (const d of this.client.list({ status: ['PENDING', 'RUNNING', 'SLEEPING'], pageSize: 1000 })) {
      const due = Math.min(d.wakeUpAt?.getTime() ?? Infinity, d.deadline?.getTime() ?? Infinity);
      if (d.status === 'RUNNING' || (d.status === 'PENDING' && due === Infinity) || due <= now.getTime()) return false;
      first = Math.min(first, due);
    }
    if (first < Infinity) await this.server.passTime(first - now.getTime() + 1);
    return first < Infinity;
  }

  /** Waits until a condition holds, and returns its value. Rejects if it does not in time. */
  async until<T>(holds: () => Promise<T> | T, timeout: Duration = '15s'): Promise<T> {
    const end = performance.now() + millis(timeout, 'timeout');
    for (;;) {
      const value = await holds();
      if (value) return value;
      if (performance.now() > end) throw new KagziError(`it does not hold in time: ${holds.toString()}`);
      await new Promise((done) => setTimeout(done, 10));
    }
  }

  /** Waits until a run holds no worker, because it waits for something. */
  async waits(run: RunHandle<unknown>): Promise<void> {
    await this.until(async () => (await run.get()).status === 'SLEEPING');
  }

  /** Stops the workers; they drain. */
  async stopWorkers(): Promise<void> {
    const workers = this.#workers.splice(0);
    for (const { worker } of workers) worker.stop();
    for (const { ended } of workers) await ended;
  }

  /** Stops the workers and closes the client. */
  async close(): Promise<void> {
    await this.stopWorkers();
    this.client.close();
  }
}
