"""Cancellation: it is recorded once the code owes nothing, and takes effect when that record is handed over."""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING

from ._calls import ACTIVE, FUNCTION, HELD, OVER, QUEUED, Call, StepCall
from ._convert import printable
from .v1 import common_pb2 as common
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run

CANCEL_NAME = "kagzi:cancelled"


def ask_cancel(run: Run, until: float) -> bool:
    """Records that the run is being cancelled, and when its grace period ends; true the first time."""
    first = not run.cancel_asked
    run.cancel_asked, run.grace_until = True, until
    try_cancel(run)
    run.go()
    return first


def try_cancel(run: Run) -> None:
    """Records the cancellation, if it was asked for and the code owes nothing."""
    if not run.cancel_asked or run.cancelling or run.owing > 0 or run.quitted or run.closing:
        return
    if run.after_leaving(lambda: try_cancel(run)):
        return
    run.cancelling = True
    running = sorted(c.name for c in run.open if c.running and not c.clean)
    run.at_work = set(running)
    data = json.dumps({"running": running} if running else {}, separators=(",", ":")).encode()
    op = run.complete_own(CANCEL_NAME, "", common.Payload(data=data, metadata={"content-type": "application/json"}))
    heapq.heappush(run.results, (run.recorded + op.index, 0, (), True, None))


def read_cancel(run: Run, s: f.Step) -> None:
    try:
        run.at_work = set(json.loads(s.output.data).get("running", ()))
    except (ValueError, AttributeError, TypeError):
        run.at_work = set()  # no step counts as running
    run.cancel_asked = run.cancelling = True
    heapq.heappush(run.results, (s.settled, 0, (), False, None))


def cancel_now(run: Run) -> None:
    """Lets the cancellation take effect: it ends every sleep and wait, and every step whose code does not run."""
    run.cancelled = True
    for call in list(run.open):
        if call.clean or call.in_code or call.state == OVER:
            continue
        if call.kind == FUNCTION and (call.running or call.state == QUEUED):
            if isinstance(call, StepCall) and call.info is not None:
                call.info.cancelled = True
                if call.info.task is not None:
                    call.info.task.cancel()
            continue
        if call.name in run.at_work and call.kind == FUNCTION:
            fail_lost(run, call)
        else:
            run.endings.append(call)
    run.endings.sort(key=lambda c: c.order)
    run.held = [c for c in run.held if c.clean]
    run.release()
    run.start_bodies()


def ends_with(run: Run, call: Call) -> bool:
    """Whether the cancellation ends the call, although that may not be handed over yet."""
    return run.cancelled and not call.clean


def fail_lost(run: Run, call: Call) -> None:
    """Fails a step whose code ran when the cancellation was recorded, on a worker that has been lost since."""
    if call.state == HELD:
        run.held.remove(call)
    call.unpark()
    call.state, call.failing = ACTIVE, True
    call.set_working(True)
    run.starting = [c for c in run.starting if c is not call]
    call.failure = common.ErrorDetail(
        code=common.ERROR_CODE_CANCELLED, non_retryable=True, type="cancelled",
        message="the run was cancelled while the step ran on a worker that is lost")
    op = call.send("fail_step", lambda _: run.report(call, op), error=call.failure, started=run.now(), hold=True)


def lose(run: Run, d: common.ErrorDetail) -> None:
    """Drops a run that another worker has or that has ended. Whatever its code does no longer counts."""
    run.worker.log.info("lease of run %s lost; stopping its code: %s", run.task.run_id, printable(d.message))
    run.over("lost")
