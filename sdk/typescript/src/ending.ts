// How a run ends: with a result, with an error, as the next one, or because its code has diverged.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import type { Call as CodeCall } from './call.js';
import { printable } from './convert.js';
import { Coded, ContinueAsNew, codeName, detailOf } from './errors.js';
import { CANCEL_NAME, kindName } from './branch.js';
import type { Op } from './outbox.js';
import { deliverable } from './order.js';
import { sendRelease } from './parking.js';
import { logFailedRun } from './log.js';

/** Milliseconds that an end of the code waits for branches that may still make owed calls. */
const END_REST = 50;
const MOST_SAID = 100;

/** Sends the end of the run right after its last results; false if it waits for owed calls. */
export function finish(act: Activation): boolean {
  if (act.owing > 0 && !act.replaying) {
    if (act.cause !== 'ending') {
      act.cause = 'ending';
      act.after(END_REST, () => endNow(act));
    }
    return false;
  }
  end(act, []);
  return true;
}

function endNow(act: Activation): void {
  if (act.quitted || act.closing) return;
  const names = owed(act).map((c) => c.name);
  if (names.length > 0) {
    const text = `run ${act.task.runId}: the code has ended without the recorded calls that it owes: ${names.map(printable).join(', ')}`;
    act.worker.log.warn(text);
  }
  end(act, names);
}

function end(act: Activation, unreached: string[]): void {
  const { outcome } = act;
  act.rootBranch.writeLines();
  if (!outcome) return;
  const again = 'error' in outcome && outcome.error instanceof ContinueAsNew ? outcome.error : undefined;
  if ('error' in outcome && !again) return fail(act, detailOf(outcome.error), unreached);
  act.closing = true;
  const { namespace, taskQueue, workflowType, version } = act.task;
  const output = 'output' in outcome ? outcome.output : undefined;
  const next = { namespace, taskQueue, workflowType, version, input: again?.input };
  const continueAs = again && v1.StartWorkflowRequest.create(next);
  const complete = { output, continueAs, unreached, unreceived: [...act.unreceived].sort() };
  act.send('completeWorkflow', complete, (r) => {
    act.worker.session.stats.count(r.completedWorkflow?.status, performance.now() - act.since);
    act.over('finished');
  });
  act.quit('finished');
}

/** Records that the run, or this attempt of it, failed. */
export function fail(act: Activation, d: v1.ErrorDetail, unreached: string[] = []): void {
  if (act.afterLeaving(() => fail(act, d, unreached)) || act.quitted || act.closing) return;
  act.closing = true;
  sendFailure(act, d, unreached);
  act.quit('finished');
}

export function sendFailure(act: Activation, d: v1.ErrorDetail, unreached: string[] = []): void {
  act.send('failWorkflow', { error: d, unreached, unreceived: [...act.unreceived].sort() }, (r) => {
    act.worker.session.stats.count(r.failedWorkflow?.status, performance.now() - act.since);
    logFailedRun(act, d, r.failedWorkflow);
    act.over('finished');
  });
}

/** Handles an operation that the server refused for good: the run fails, so that people see it. */
export function refused(act: Activation, op: Op, d: v1.ErrorDetail): void {
  if (d.subject === 'divergence' && 'unreached' in op.body && op.body.unreached.length > 0) {
    dropAfter(act, op);
    sendRelease(act, 'released', false, v1.Divergence.create({ owed: owed(act) }));
    return;
  }
  let text = `the server refused to record ${op.subject()}: ${d.message}`;
  const tooLarge = d.code === v1.ErrorCode.INVALID_ARGUMENT || d.code === v1.ErrorCode.RESOURCE_EXHAUSTED;
  if (op.kind === 'failWorkflow' && !act.endRefused && tooLarge) {
    act.endRefused = true;
    text = `the run failed, and the server refused to record its error: ${d.message}`;
  } else if (op.kind === 'failWorkflow' || op.kind === 'releaseTask') {
    act.worker.log.warn(`the server refused the end of run ${act.task.runId}; dropping it: ${printable(d.message)}`);
    act.over('lost');
    return;
  }
  dropAfter(act, op);
  act.closing = true;
  sendFailure(act, detailOf(new Coded(text, 'refused', codeName(d.code))));
  act.quit('finished');
}

/** Removes a refused operation and those after it, which the server refuses, too. */
function dropAfter(act: Activation, op: Op): void {
  act.leaving = undefined;
  for (const [index, after] of act.ops) {
    if (index < op.index) continue;
    act.ops.delete(index);
    act.worker.session.outbox.withdraw(after);
  }
}

/** Whether calls are held while nothing can make those that the code owes. */
export function atRest(act: Activation): boolean {
  if (act.owing === 0 || act.endings.length > 0 || deliverable(act) || act.mainOver) return false;
  return act.held.length > 0 || (act.cancelAsked && !act.cancelling);
}

/** Handles code that has diverged from the run's history. */
export function diverge(act: Activation): void {
  if (act.quitted || act.closing) return;
  const report = divergence(act);
  const policy = act.worker.options.onDivergence;
  const made = callNames(report.made);
  const owing = callNames(report.owed);
  const said = `made ${made}, owed ${owing}`;
  if (policy === 'warn' && !act.misfit) {
    act.worker.log.warn(
      `run ${act.task.runId}: the code has diverged from the history; it goes on, and recorded calls are skipped: ${said}`,
    );
    act.uncalled.clear();
    act.owing = act.ownLeft = 0;
    act.release();
    act.schedule();
    return;
  }
  act.closing = true;
  if (policy === 'pause') {
    act.worker.log.warn(`run ${act.task.runId}: the code has diverged from the history; giving the run back: ${said}`);
    sendRelease(act, 'released', false, report);
    act.quit('released');
    return;
  }
  const text = `this is not the code that the run started with: it makes ${made}, and not the recorded ${owing}`;
  sendFailure(act, detailOf(new Coded(text, 'nondeterministic')));
  act.quit('finished');
}

/** Returns the calls of the code without a record, and the recorded ones that it owes. */
export function divergence(act: Activation): v1.Divergence {
  const made = [...act.held]
    .sort((a, b) => a.number - b.number)
    .map((c) => v1.Call.create({ name: c.name, kind: c.kind, branch: c.branch.path, detail: detail(c) }));
  if (act.misfit) made.push(act.misfit);
  if (made.length === 0) made.push(v1.Call.create({ name: CANCEL_NAME, kind: v1.StepKind.FUNCTION }));
  return v1.Divergence.create({ made: made.slice(0, MOST_SAID), owed: owed(act) });
}

function detail(call: CodeCall): string {
  return call.kind === v1.StepKind.CHILD_WORKFLOW || call.kind === v1.StepKind.SIGNAL ? call.detail : '';
}

export function owed(act: Activation): v1.Call[] {
  const names = [...act.uncalled].filter(([, owes]) => owes).map(([name]) => name);
  const steps = names.map((name) => act.history.get(name)).filter((s) => s !== undefined);
  return steps
    .sort((a, b) => a.sequence - b.sequence)
    .slice(0, MOST_SAID)
    .map((s) => v1.Call.create({ name: s.name, kind: s.kind, branch: s.branch, detail: s.signalName }));
}

export function callNames(calls: readonly v1.Call[]): string {
  const named = calls.map((c) => `${kindName(c.kind)} ${printable(c.name)}${c.branch ? ` in branch ${c.branch}` : ''}`);
  return named.join(', ') || 'none';
}
