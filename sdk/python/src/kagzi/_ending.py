"""How a run ends: with a result, with an error, as the next one, or because its code has diverged."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import _order
from ._calls import CHILD, FUNCTION, SIGNAL, Call
from ._convert import printable
from ._order import CANCEL_NAME
from ._outbox import Op
from ._parking import release
from .errors import Coded, ContinueAsNew, KagziError, Misuse, code_name, error_detail
from .v1 import common_pb2 as common
from .v1 import worker_pb2 as w
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run

_END_REST = 0.05  # seconds that an end of the code waits for branches that may still make owed calls
_MOST_SAID = 100
_KIND_NAMES: dict[int, str] = {FUNCTION: "step", f.STEP_KIND_SLEEP: "sleep", SIGNAL: "wait for a signal",
                               CHILD: "child run"}


def kind_name(kind: int) -> str:
    return _KIND_NAMES.get(kind, "step of unknown kind")


def finish(run: Run) -> bool:
    """Sends the end of the run right after its last results; false if it waits for owed calls."""
    if run.owing > 0 and not run.replaying:
        if run.cause != "ending":
            run.cause = "ending"
            run.worker.loop.call_later(_END_REST, functools.partial(end_now, run))
        return False
    end(run, [])
    return True


def end_now(run: Run) -> None:
    if run.quitted or run.closing:
        return
    names = [c.name for c in owed(run)]
    if names:
        run.worker.log.warning("run %s: the code has ended without the recorded calls that it owes: %s",
                                run.task.run_id, ", ".join(map(printable, names)))
    end(run, names)
    run.drop()


def end(run: Run, unreached: list[str]) -> None:
    root = run.root
    assert root is not None
    error: BaseException | None
    try:
        error, output = root.exception(), None if root.exception() else root.result()
    except asyncio.CancelledError as e:
        error, output = e, None
    for branch in [run.root_branch, *run.loop.tasks.values()]:
        run.write_lines(branch)
    again = _continuation(error)
    if again is None and error is not None:
        fail(run, error_detail(error), unreached)
        return
    run.closing = True
    following = None if again is None else f.StartWorkflowRequest(
        namespace=run.task.namespace, task_queue=run.task.task_queue, workflow_type=run.task.workflow_type,
        version=run.task.version, input=again.args[0])
    run.send("complete_workflow", functools.partial(completed, run), output=output, continue_as=following,
             unreached=unreached, unreceived=sorted(run.unreceived))
    run.quit("finished")


def completed(run: Run, r: w.SessionResponse) -> None:
    run.worker.session.count(r.completed_workflow.status, time.monotonic() - run.since)
    run.over("finished")


def fail(run: Run, d: common.ErrorDetail, unreached: Iterable[str] = ()) -> None:
    if run.after_leaving(lambda: fail(run, d, unreached)):
        return
    if not run.quitted and not run.closing:
        send_failure(run, d, unreached)


def reject(run: Run, error: KagziError) -> KagziError:
    """Fails the run for good from inside a call of its code, and returns the exception to raise."""
    detail = error_detail(error)
    detail.non_retryable = run.rejected = True
    run.fail(detail)
    return error


def misused(run: Run, error: Misuse) -> None:
    """Fails the run whose code did what only steps may do."""
    if run.away:  # it is found again in the replay
        run.worker.cache.drop(run.task.run_id)
        return
    run.rejected = True
    run.fail(error_detail(error))


def send_failure(run: Run, d: common.ErrorDetail, unreached: Iterable[str] = ()) -> None:
    """Fails the run, and ends its code."""
    def answered(r: w.SessionResponse) -> None:
        run.worker.session.count(r.failed_workflow.status, time.monotonic() - run.since)
        run.worker.log_failed_run(run, d, r.failed_workflow)
        run.over("finished")

    run.closing = True
    run.send("fail_workflow", answered, error=d, unreached=list(unreached), unreceived=sorted(run.unreceived))
    run.quit("finished")


def refused(run: Run, op: Op, d: common.ErrorDetail) -> None:
    """Handles an operation that the server refused for good: the run fails, so that people see it."""
    end = op.msg.complete_workflow if op.kind == "complete_workflow" else op.msg.fail_workflow
    if d.subject == "divergence" and end.unreached:
        drop_after(run, op)
        release(run, "released", f.Divergence(owed=owed(run)))
        return
    text = f"the server refused to record {op.subject()}: {d.message}"
    if op.kind == "fail_workflow" and not run.end_refused and d.code in (
            common.ERROR_CODE_INVALID_ARGUMENT, common.ERROR_CODE_RESOURCE_EXHAUSTED):
        run.end_refused = True
        text = "the run failed, and the server refused to record its error: " + d.message
    elif op.kind in ("fail_workflow", "release_task"):
        run.worker.log.warning("the server refused the end of run %s; dropping it: %s", run.task.run_id,
                                printable(d.message))
        run.over("lost")
        return
    drop_after(run, op)
    send_failure(run, error_detail(Coded(text, "refused", code_name(d.code))))


def drop_after(run: Run, op: Op) -> None:
    """Removes a refused operation and those after it, which the server refuses, too."""
    run.leaving = None
    for index in [i for i in run.ops if i >= op.index]:
        run.worker.session.withdraw(run.ops.pop(index))


def at_rest(run: Run) -> bool:
    """Whether calls are held while nothing can make those that the code owes."""
    if run.owing == 0 or run.endings or _order.deliverable(run) or run.going_on() or run.main_over:
        return False
    return bool(run.held) or (run.cancel_asked and not run.cancelling)


def diverge(run: Run) -> None:
    """Handles code that has diverged from the run's history."""
    if run.quitted or run.closing:
        return
    report, policy = divergence(run), "pause" if run.replaying else run.worker.on_divergence
    made, owed = call_names(report.made), call_names(report.owed)
    if policy == "warn" and run.misfit is None:
        run.worker.log.warning("run %s: the code has diverged from the history; it goes on, and recorded calls are "
                                "skipped: made %s, owed %s", run.task.run_id, made, owed)
        run.uncalled.clear()
        run.owing = run.own_left = 0
        run.release()
        run.go()
    elif policy == "pause":
        run.worker.log.warning("run %s: the code has diverged from the history; giving the run back: made %s, "
                                "owed %s", run.task.run_id, made, owed)
        release(run, "released", report)
    else:
        send_failure(run, error_detail(Coded(
            f"this is not the code that the run started with: it makes {made}, and not the recorded {owed}",
            "nondeterministic")))


def divergence(run: Run) -> f.Divergence:
    made = [f.Call(name=c.name, kind=c.kind, branch=c.branch.path, detail=_detail(c))
            for c in sorted(run.held, key=lambda c: c.number)]
    if run.misfit is not None:
        made.append(run.misfit)
    if not made:
        made.append(f.Call(name=CANCEL_NAME, kind=FUNCTION))
    return f.Divergence(made=made[:_MOST_SAID], owed=owed(run))


def owed(run: Run) -> list[f.Call]:
    steps = sorted((run.history[n] for n, owed in run.uncalled.items() if owed), key=lambda s: s.sequence)
    return [f.Call(name=s.name, kind=s.kind, branch=s.branch, detail=s.signal_name) for s in steps[:_MOST_SAID]]


def _detail(call: Call) -> str:
    return call.detail if call.kind in (CHILD, SIGNAL) else ""


def _continuation(error: BaseException | None) -> ContinueAsNew | None:
    if isinstance(error, ContinueAsNew):
        return error
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            found = _continuation(one)
            if found is not None:
                return found
    return None


def call_names(calls: Iterable[f.Call]) -> str:
    """Lists calls for a log or an error."""
    return ", ".join(f"{kind_name(c.kind)} {printable(c.name)}" + (f" in branch {c.branch}" if c.branch else "")
                     for c in calls) or "none"
