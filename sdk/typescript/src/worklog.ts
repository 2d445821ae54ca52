// What a worker logs of its runs and steps.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { printable, unix } from './convert.js';

/** Logs a failed attempt of a step. */
export function logFailedStep(
  act: Activation,
  name: string,
  attempt: number,
  d: v1.ErrorDetail,
  r: v1.FailStepResponse | undefined,
): void {
  const text = r?.scheduledRetry
    ? `failed; it will be retried in ${((r.retryIn ? unix(r.retryIn) : 0) / 1000).toFixed(1)} s`
    : 'failed for good';
  act.worker.log.warn(`step ${name} ${text} (attempt ${attempt}): ${failure(d)}`, { ...facts(act), step: name });
}

/** Logs that a run, or this attempt of it, failed. */
export function logFailedRun(act: Activation, d: v1.ErrorDetail, r: v1.FailWorkflowResponse | undefined): void {
  const { runId, workflowType } = act.task;
  const again = r?.status === v1.WorkflowStatus.PENDING || r?.status === v1.WorkflowStatus.SLEEPING;
  if (again) act.worker.log.warn(`run ${runId} failed; it will be retried: ${failure(d)}`, facts(act));
  else if (r?.status === v1.WorkflowStatus.FAILED) {
    act.worker.log.error(`run ${runId} of type ${workflowType} failed: ${failure(d)}`, facts(act));
  }
}

function facts(act: Activation): Record<string, string> {
  return { run: act.task.runId, type: act.task.workflowType };
}

function failure(d: v1.ErrorDetail): string {
  return printable(d.message) + (d.type ? ` [${printable(d.type)}]` : '') + (d.stack ? `\n${d.stack}` : '');
}
