// Options of workers, and what they tell the server of the program.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Codec } from './codec.js';
import type { Duration } from './convert.js';
import { names } from './known.js';
import type { Log } from './log.js';
import type { ConnectOptions } from './profile.js';
import type { Attempt } from './step.js';
import type { Workflow } from './workflow.js';

/** Is called around workflow functions and code of steps. */
export interface Interceptor {
  /** Is called around a workflow function, in every replay; it must be deterministic, and return what next returns. */
  run?<T>(about: RunAbout, next: () => Promise<T>): Promise<T>;
  /** Is called around the code of one attempt of a step. */
  step?<T>(about: Attempt, next: () => Promise<T>): Promise<T>;
}

/** What an interceptor knows of a run. */
export interface RunAbout {
  runId: string;
  workflowType: string;
  attempt: number;
  /** Whether the run has a history, so that the code is replayed. */
  replaying: boolean;
  /** Whether the run is only checked, or a capsule is replayed: nothing of it counts. */
  check: boolean;
}

/** Options of a worker. */
export interface WorkerOptions extends ConnectOptions {
  /** Main queue (that of the workflows, else `default`). */
  queue?: string;
  /** Further queues, in order of preference. */
  queues?: readonly string[];
  /** Most runs that it holds at once (100). */
  maxConcurrent?: number;
  /** Most RUNNING runs of a workflow type in the queue, over all workers. */
  typeLimits?: Readonly<Record<string, number>>;
  /** Most RUNNING runs in the queue, over all workers. */
  queueLimit?: number;
  /** Letters, digits, `-` and `_`, at most 64 (the server chooses one). */
  workerId?: string;
  /** Shown to operators (that of the operating system). */
  hostname?: string;
  /** Of the application. */
  version?: string;
  /** Shown to operators, and matched by requirements of runs. */
  labels?: Readonly<Record<string, string>>;
  /** Matched by requirements of runs, like `tool:jq` with value `1.7`. */
  capabilities?: Readonly<Record<string, string>>;
  /** Names the workflow code: up to 128 printable ASCII characters (a hash of the program's main file). */
  buildId?: string;
  /** What to do when the code does not match a run's history (`pause`). */
  onDivergence?: 'pause' | 'fail' | 'warn';
  /** Ids of `run.patched` calls that are no longer in the code. */
  removedPatches?: readonly string[];
  /** How long a stopping worker waits for its runs (300 s); 0 means not at all. */
  drainTimeout?: Duration;
  /** Drain on SIGTERM and SIGINT; a second one releases the runs at once (true). */
  handleSignals?: boolean;
  /** Logger of the worker and of workflow code (lines on stderr, from `info` on). */
  log?: Log;
  /** Transforms payloads. */
  codec?: Codec;
  /** Most parked runs whose code it keeps in memory, each for 10 minutes; 0 for none, at most 100,000 (1,000). */
  cache?: number;
  /** Most bytes of their payloads, and 16 KiB for each run (256 MiB). */
  cacheBytes?: number;
  /** Are called around workflow functions and code of steps; the first is the outermost. */
  interceptors?: readonly Interceptor[];
  /** For tests: give the run back at every result, so that each await is replayed. */
  alwaysSuspend?: boolean;
}

export const WORKER_OPTIONS = names<WorkerOptions>()(
  'profile address namespace apiKey tls queue queues maxConcurrent typeLimits queueLimit workerId hostname version',
  'labels capabilities buildId onDivergence removedPatches drainTimeout handleSignals log codec cache cacheBytes',
  'interceptors alwaysSuspend',
);

const ARCHITECTURES: Record<string, string> = { x64: 'amd64' };
const SYSTEMS: Record<string, string> = { win32: 'windows' };
/** System and architecture, as Go names them. */
export const PLATFORM = `${SYSTEMS[process.platform] ?? process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;

/** Of this package. */
export const VERSION = '0.1.0';

/** Names the language of a worker to people and to requirements of runs (PROTOCOL.md, §1.8). */
const SDK_CAPABILITY = 'sdk:typescript';
const MAX_CAPABILITIES = 1024;

/** Returns capabilities with the SDK among them, unless there is no room for one more. */
export function withSDK(capabilities: Readonly<Record<string, string>> = {}): Record<string, string> {
  if (Object.keys(capabilities).length >= MAX_CAPABILITIES) return capabilities;
  return { ...capabilities, [SDK_CAPABILITY]: VERSION };
}

/** Returns a hash of the version of Node, the program's main file and the text of the workflow functions. */
export function ownBuild(workflows: readonly Workflow<never, unknown>[]): string {
  const hash = createHash('sha256').update(process.version);
  const [, main] = process.argv;
  try {
    if (main) hash.update(readFileSync(main));
  } catch {
    // it is no file: the functions have to do
  }
  for (const { name, fn } of workflows) hash.update(name).update(fn.toString());
  return hash.digest('hex').slice(0, 32);
}
