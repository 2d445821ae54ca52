/** A World of the Workflow SDK on a Kagzi server. The guide is README.md of this package. */
import { Client, type ClientOptions, type Log, Worker, textLog } from '@kagzi/sdk';
import { SPEC_VERSION_CURRENT, type World } from '@workflow/world';
import { createWorkflowBaseUrl } from '@workflow/utils';
import { told } from './errors.js';
import { Logs } from './log.js';
import { createQueue, poster } from './queue.js';
import { createStorage } from './storage.js';
import { createStreamer } from './stream.js';
import { workflows } from './workflows.js';

/** Options of a world. Those of the connection are as for a client of the Kagzi SDK. */
export interface WorldOptions extends Omit<ClientOptions, 'interceptors'> {
  /** Task queue of its runs (`KAGZI_WORLD_QUEUE`, or `workflow`). Apps that share it run each other's messages. */
  queue?: string;
  /** URL of the app, as this process reaches it (`WORKFLOW_LOCAL_BASE_URL`, or localhost on `PORT`, or on port 3000). */
  baseUrl?: string;
  /** Most messages that this process delivers at once (50). */
  concurrency?: number;
  /** Milliseconds that one delivery may take (24 hours). */
  deliveryTimeout?: number;
  /** Name of the deployment in new runs (`kagzi`). */
  deploymentId?: string;
  /** Milliseconds for which writes to a stream are collected (10). */
  streamFlushIntervalMs?: number;
  /** Logger of the worker (warnings and errors on stderr). */
  log?: Log;
}

const DAY = 86_400_000;

/** Returns a world. Nothing connects before it is used. Throws a ConfigError if an option is invalid. */
export function createWorld(options: WorldOptions = {}): World {
  const { baseUrl, concurrency = 50, deliveryTimeout = DAY, deploymentId = 'kagzi', log, ...connection } = options;
  const { queue = process.env['KAGZI_WORLD_QUEUE'] ?? 'workflow', streamFlushIntervalMs, ...rest } = connection;
  const client = new Client(rest);
  const logs = new Logs(client, queue);
  const url = (): string => {
    const { PORT, WORKFLOW_LOCAL_BASE_URL } = process.env;
    return baseUrl ?? WORKFLOW_LOCAL_BASE_URL ?? createWorkflowBaseUrl(`http://localhost:${PORT ?? '3000'}`);
  };
  let served: { worker: Worker; end: Promise<void> } | undefined;

  return {
    ...createQueue(client, queue, deploymentId),
    ...createStorage(client, logs),
    ...createStreamer(client, queue),
    specVersion: SPEC_VERSION_CURRENT,
    ...(streamFlushIntervalMs === undefined ? {} : { streamFlushIntervalMs }),
    start: told(async () => {
      if (served) return;
      const logger = log ?? textLog('warn');
      const worker = new Worker(workflows(client, logs, poster(url), deliveryTimeout), {
        ...{ ...rest, queue, maxConcurrent: concurrency, buildId: 'world/1', version: '0.1.0' },
        // The app decides what a signal means, and calls close.
        ...{ handleSignals: false, drainTimeout: '10s', log: logger },
      });
      const end = worker.run();
      end.catch((e: unknown) => logger.error('the worker of the world has ended', { error: e }));
      served = { worker, end };
      await Promise.race([worker.registered, end]);
    }),
    close: told(async () => {
      served?.worker.stop();
      await served?.end;
      served = undefined;
      client.close();
    }),
  };
}

export default createWorld;
