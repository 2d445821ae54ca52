"""The order of results, and cancellation.

The code gets results one at a time, as the server recorded them. A cancellation is recorded once the code owes nothing,
and takes effect when that record is handed over.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._calls import ACTIVE, CANCELLED, FUNCTION, HELD, OVER, QUEUED, RECORDED, REPORTED, SIGNAL, Call, StepCall
from ._convert import printable
from ._outbox import ASKS, Op
from ._waits import ChildrenCall, ChildState
from .v1 import common_pb2 as common
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run


def end_call(run: Run, call: Call, how: int) -> None:
    if call.outcome != REPORTED or how == CANCELLED:
        call.outcome = how
    call.state, call.running = OVER, False
    call.unpark()
    call.set_working(False)
    run.open.pop(call, None)
    if call.name in run.names:
        run.names[call.name].in_flight = False


def hand(run: Run, call: Call, how: int) -> None:
    if call.state == OVER:
        return
    end_call(run, call, how)
    if call.kind == SIGNAL and how != CANCELLED and not call.abandoned:
        run.unreceived.discard(call.name)
    if call.future is not None and not call.future.done():
        call.future.set_result(None)


def queue(run: Run, call: Call, key: int, live: bool) -> None:
    if call.state in (OVER, QUEUED):
        return
    call.state = QUEUED
    call.set_working(False)
    # Of children whose ends one answer told, each has a place of its own.
    sub = max((c.step.settled for c in call.children if c.step), default=1) if isinstance(call, ChildrenCall) else 1
    heapq.heappush(run.results, (key, max(sub, 1), call.order, live, call))


def report(run: Run, call: Call, op: Op) -> None:
    """Queues the result that an operation recorded."""
    call.outcome = REPORTED
    queue(run, call, run.recorded + op.index, True)


def hand_next(run: Run) -> bool:
    """Hands over the next result; false if there is none."""
    if run.endings:
        hand(run, run.endings.pop(0), CANCELLED)
        return True
    if not deliverable(run):
        return False
    key, _, _, _, call = heapq.heappop(run.results)
    if call is None:
        run.current = run.cancel_key = key
        cancel_now(run)
    elif call.state != OVER:
        run.current = key
        hand(run, call, RECORDED)
    return True


def deliverable(run: Run) -> bool:
    if not run.results:
        return False
    key, _, _, live, _ = run.results[0]
    if not live:
        return True
    if (run.owing > 0 and run.held) or run.worker.always_suspend:
        return False
    if run.again:
        if run.ops and next(iter(run.ops)) <= run.again:
            return False  # the server may have recorded these in another order
        run.again = 0
        run.results = [(run.places.get(r[0], r[0]) if r[3] else r[0], *r[1:]) for r in run.results]
        heapq.heapify(run.results)
        key = run.results[0][0]
    if run.asking:
        for op in run.ops.values():
            if run.recorded + op.index >= key:
                return True
            if op.kind in ASKS:
                return False
    return True


def release(run: Run) -> None:
    """Lets held calls take effect once nothing is owed."""
    try_cancel(run)
    if run.owing > 0 or (run.cancelling and not run.cancelled):
        return
    held, run.held = run.held, []
    for call in held:
        run._activate(call)


def children_known(run: Run, call: ChildrenCall) -> bool:
    if any(c.step is None for c in call.children):
        return False
    key = max((c.key for c in call.children), default=0)
    if key == 0:
        hand(run, call, RECORDED)
    else:
        queue(run, call, key, any(c.live for c in call.children))
    return True


def known_at_cancel(run: Run, call: ChildrenCall) -> bool:
    """Whether all children had ended when the cancellation took effect; in a replay later ends may be known earlier."""
    return all(c.step is not None and run.places.get(c.key, c.key) <= run.places.get(run.cancel_key, run.cancel_key)
               for c in call.children)


def children_ended(run: Run, steps: Iterable[f.Step], asked: list[ChildState], op: Op) -> bool:
    """Takes the steps of children that have ended; false if there are none."""
    by_name = {s.name: s for s in steps}
    for c in asked:
        s = by_name.get(c.name)
        if s is not None and c.step is None:
            c.step, c.key, c.live = s, run.recorded + op.index, True
    for call in list(run.open):
        if isinstance(call, ChildrenCall) and call.state == ACTIVE and children_known(run, call):
            call.outcome = REPORTED
    return bool(by_name)


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
