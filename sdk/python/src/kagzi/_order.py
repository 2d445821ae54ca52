"""The order of results: the code gets them one at a time, as the server recorded them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import _cancel
from ._calls import ACTIVE, CANCELLED, OVER, QUEUED, RECORDED, REPORTED, SIGNAL, Call
from ._op import ASKS, Op
from ._waits import ChildrenCall, ChildState
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
    """Gives the code the result of a call."""
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
        _cancel.cancel_now(run)
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
    _cancel.try_cancel(run)
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
