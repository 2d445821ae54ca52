// What the tests share: a Kagzi server that can be killed, and the app as a process of its own.
import { Server } from '@kagzi/sdk/testing';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PACKAGE } from './app/build.js';

/** A Kagzi server, and the apps on it. */
export class Scene {
  readonly folder = mkdtempSync(join(tmpdir(), 'kagzi-world-'));
  readonly journal = join(this.folder, 'journal');
  readonly gate = join(this.folder, 'gate');
  readonly #apps = new Set<App>();
  server!: Server;

  /** Starts the server, again at the address that it had. */
  async serve(): Promise<void> {
    const address = this.server ? { address: this.server.address } : {};
    this.server = await Server.start({ folder: join(this.folder, 'data'), ...address });
  }

  /** Starts the app. */
  async app(built: string, env: Record<string, string> = {}): Promise<App> {
    const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('KAGZI_')));
    const world = { WORKFLOW_TARGET_WORLD: '@kagzi/world', KAGZI_ADDRESS: this.server.address, KAGZI_PROFILE: 'off' };
    const child = spawn(process.execPath, [join(PACKAGE, 'build/tests/app/server.js'), built], {
      cwd: PACKAGE,
      env: { ...own, ...world, JOURNAL: this.journal, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (text: Buffer) => (said = (said + text.toString()).slice(-8000)));
    for await (const line of createInterface(child.stdout)) {
      if (!line.startsWith('port ')) continue;
      const app = new App(child, `http://127.0.0.1:${line.slice(5)}`, () => said);
      this.#apps.add(app);
      child.stdout.resume();
      return app;
    }
    throw new Error(`the app did not start: ${said}`);
  }

  /** Returns what steps wrote to the journal. */
  lines(): string[] {
    return existsSync(this.journal) ? readFileSync(this.journal, 'utf8').trim().split('\n') : [];
  }

  async close(): Promise<void> {
    for (const app of this.#apps) await app.kill();
    await this.server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A process of the app. */
export class App {
  constructor(
    private readonly child: ChildProcess,
    private readonly url: string,
    private readonly said: () => string,
  ) {}

  /** Calls a route of the app. */
  async call(route: string, body: unknown): Promise<unknown> {
    const response = await fetch(`${this.url}/${route}`, { method: 'POST', body: JSON.stringify(body) });
    const answer: unknown = await response.json();
    if (!response.ok) throw new Error(`${route}: ${JSON.stringify(answer)}\n${this.said()}`);
    return answer;
  }

  /** Starts a workflow and returns the run's id. */
  async start(name: string, ...args: unknown[]): Promise<string> {
    return ((await this.call('start', { name, args })) as { runId: string }).runId;
  }

  /** Ends the process as kill -9 does. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = new Promise((done) => this.child.once('exit', done));
    this.child.kill('SIGKILL');
    await ended;
  }
}

/** Waits until a condition holds and returns its value. */
export async function until<T>(holds: () => Promise<T> | T, what: string, seconds = 60): Promise<NonNullable<T>> {
  for (const end = performance.now() + seconds * 1000; ;) {
    const value = await holds();
    if (value) return value;
    if (performance.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}
