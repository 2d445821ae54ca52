// The Kagzi workflows behind a world. Their code runs in the app, in the worker that `world.start()` starts.
import { Cancelled, type Client, Failed, type Run, type Workflow, workflow } from '@kagzi/sdk';
import type { Logs } from './log.js';
import type { Deliver, Message } from './queue.js';
import { OPEN, TYPES } from './types.js';

/** How long one run of a stream takes chunks. Later ones go to the stream's next run. */
const STREAM_LIFE = '30d';
const DELIVERIES = 500;
const RETRY = { attempts: 60, initial: '1s', max: '30s', coefficient: 1.5 } as const;

type AnyWorkflow = Workflow<never, unknown>;

/** Returns the workflows. Most milliseconds that a delivery may take. */
export function workflows(client: Client, logs: Logs, deliver: Deliver, timeout: number): AnyWorkflow[] {
  /** Ends the runs that hold the tokens of a run's hooks. */
  const release = async (runId: string): Promise<number> => {
    let count = 0;
    for await (const hook of client.list({ workflowTypes: [TYPES.hook], tags: { run: runId }, status: OPEN })) {
      await client.run(hook.runId).signal('release', null, { id: 'release' });
      count++;
    }
    return count;
  };

  /** Returns how a run ended, or null: an event that would end it may have been refused. */
  const outcome = async (runId: string): Promise<{ status: string; message: string; code: string } | null> => {
    const log = await logs.open(runId);
    await log.refresh();
    const { status, error } = log.state.run;
    return log.state.ended ? { status, message: error?.message ?? '', code: error?.code ?? '' } : null;
  };

  const run = workflow(TYPES.run, async (run: Run) => {
    const { externalId, runId } = run.info;
    let end: Awaited<ReturnType<typeof outcome>> = null;
    try {
      while (!end) {
        await run.signal('end');
        end = await run.step('outcome', () => outcome(externalId));
      }
    } catch (e) {
      if (e instanceof Cancelled) await run.cleanup((clean) => clean.step('release-hooks', () => release(externalId)));
      throw e;
    }
    await run.step('release-hooks', () => release(externalId));
    if (end.status === 'failed') throw new Failed(end.message, { type: end.code || 'run_failed', retryable: false });
    if (end.status === 'cancelled') {
      await run.step('cancel', () => client.run(runId).cancel({ reason: 'cancelled by the application' }));
      await run.sleep('until-cancelled', '1h');
    }
    return null;
  });

  const hook = workflow(TYPES.hook, async (run: Run) => {
    await run.signal('release');
    return null;
  });

  const stream = workflow(TYPES.stream, async (run: Run) => {
    await run.first({ closed: run.signal('close'), moved: run.signal('moved'), late: run.sleep('life', STREAM_LIFE) });
    return null;
  });

  const message = workflow(TYPES.message, async (run: Run, m: Message) => {
    for (let n = 0; n < DELIVERIES; n++) {
      const { runId } = run.info;
      const after = await run.step('deliver', (step) => deliver(m, `msg_${runId}`, step), { retry: RETRY, timeout });
      if (after === null) return null;
      if (after > 0) await run.sleep('delay', after * 1000);
    }
    return run.continueAsNew(m); // a long series of delays would fill the history
  });
  return [run, hook, stream, message];
}
