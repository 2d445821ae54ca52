"""How a run gives its worker back: parked, when nothing can continue by itself, or released."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _cache
from ._calls import ACTIVE, PARK_SETTLE
from ._waits import ChildrenCall, ChildState, ServerWait
from .errors import Coded, error_detail
from .v1 import worker_pb2 as w
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._op import Op
    from ._run import Run

_PARK_AFTER_NOTHING = 1.0  # seconds before a run that did nothing since its claim is parked


def idle(run: Run) -> None:
    """Parks the run, because nothing can continue by itself."""
    if run.quitted or run.closing or run.endings or run.held or run.starting or run.going_on():
        return
    if run.results:
        if run.worker.always_suspend and not run.ops:
            run.closing = True
            send_release(run, "suspended")
            run.quit("suspended")
        return
    if run.asking > run.questions:
        return
    if not run.parked:
        deadlocked(run)
        return
    delay = park_delay(run)
    if delay <= 0:
        park(run)
        return
    generation = run.generation

    def later() -> None:
        if generation == run.generation and not run.quitted and not run.closing and not run.results:
            park(run)

    run.worker.loop.call_later(delay, later)


def park_delay(run: Run) -> float:
    due = [c.due for c in run.parked if c.due]
    if due and run.issued == 0:
        return _PARK_AFTER_NOTHING
    return PARK_SETTLE if due and min(due) - run.now() <= PARK_SETTLE else 0.0


def park(run: Run) -> None:
    if run.questions > 0 or run.working or run.starting:
        return
    waits = [c for c in run.parked if isinstance(c, ServerWait) and not c.asked]
    if waits:
        ask_parked(run, waits)
        return
    run.closing = True
    send_release(run, "suspended", park=True)
    if not _cache.may_keep(run):
        run.quit("suspended")


def ask_parked(run: Run, calls: list[ServerWait]) -> None:
    """Asks about parked calls, because what happened already does not wake the run. Single children share one."""
    single: dict[str, tuple[ChildState, ChildrenCall]] = {}
    each: list[ServerWait] = []
    for call in sorted(calls, key=lambda c: c.order):
        if isinstance(call, ChildrenCall) and len(call.children) == 1:
            each.append(call)
            single.setdefault(call.children[0].run_id, (call.children[0], call))
        else:
            ask_for(run, call.ask(True), call.answered, [call])
    if single:
        children, one = [c for c, _ in single.values()], next(iter(single.values()))[1]
        ask_for(run, one.ask_about(children, True, True),
                lambda r, op: run.children_ended(r.awaited_children.steps, children, op), each)


def ask_for(run: Run, ask: Callable[[Callable[[w.SessionResponse], None]], Op],
            answered: Callable[[w.SessionResponse, Op], bool], calls: list[ServerWait]) -> None:
    run.questions += 1

    def taken(r: w.SessionResponse) -> None:
        run.questions -= 1
        got = answered(r, op)
        for call in calls:
            call.known = time.monotonic()
            call.asked = call.asked or not got
            if call.state != ACTIVE:
                call.unpark()

    op = ask(taken)


def deadlocked(run: Run) -> None:
    from ._ending import send_failure

    run.closing = True
    send_failure(run, error_detail(Coded(
        "every branch of the run waits for another one, or for something outside of the SDK that workflow code may "
        "not wait for, so that none ever goes on", "deadlock")))
    run.quit("finished")


def send_release(run: Run, cause: str, *, park: bool = False, divergence: f.Divergence | None = None) -> None:
    run.send("release_task", lambda _: run.suspend() if park else run.over(cause), park=park, divergence=divergence)


def give_back(run: Run) -> None:
    """Releases the run unfinished. Results in flight still count."""
    if run.after_leaving(lambda: give_back(run)):
        return
    if not run.ended and not run.closing:
        run.closing = True
        send_release(run, "released")
    run.quit("released")


def ask_pause(run: Run) -> bool:
    """Asks to pause the run; true the first time."""
    if run.pausing or run.ended:
        return False
    run.pausing = True
    run.pause_if_idle()
    return True


def go_on(run: Run) -> None:
    """Takes the request to pause back."""
    if run.pausing:
        run.pausing = False
        run.start_bodies()


def pause_if_idle(run: Run) -> None:
    """Releases a run that is to be paused if no step's code runs."""
    if run.pausing and run.bodies_running == 0 and not run.closing and not run.quitted:
        if run.after_leaving(run.pause_if_idle):
            return
        run.closing = True
        send_release(run, "paused")
        run.quit("paused")
