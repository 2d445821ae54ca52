// Loggers of workers and of workflow code.
import { printable, unix } from './convert.js';
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import type { StepCall } from './step.js';

/** Facts of a log line. */
export type Fields = Readonly<Record<string, unknown>>;

/** A logger. Those of pino, winston and the console fit after swapping the arguments. */
export interface Log {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type Level = (typeof LEVELS)[number];

/** Returns a logger of what writes its lines. */
export function logOf(write: (level: Level, message: string, fields: Fields) => void): Log {
  const at = (level: Level) => (message: string, fields?: Fields) => write(level, message, fields ?? {});
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Returns a logger that writes lines to stderr, from a level on (`info`). */
export function textLog(least: Level = 'info'): Log {
  return logOf((level, message, fields) => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(least)) return;
    const facts = Object.entries(fields).map(([name, value]) => ` ${name}=${printable(String(value))}`);
    const text = message.split('\n').map(printable).join('\n');
    process.stderr.write(`${new Date().toISOString()} ${level.toUpperCase()} ${text}${facts.join('')}\n`);
  });
}

export function logFailedStep(call: StepCall<unknown>, d: v1.ErrorDetail, r: v1.FailStepResponse | undefined): void {
  const { act, name, attempt } = call;
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
