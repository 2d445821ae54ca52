"""How a run leaves its worker: parked, when nothing can continue by itself, released, or ended.

A parked run that comes back to this worker goes on where it was, without a replay. Its task then has only what happened
meanwhile, and names the lease under which it was parked. If anything does not fit, the worker drops the code as at any
other suspension, reads the whole history and replays.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from . import _order
from ._calls import ACTIVE, CHILD, FUNCTION, PARK_SETTLE, SIGNAL, Call
from ._convert import printable, unix
from ._outbox import Op
from ._waits import Answer, ChildrenCall, ChildState, ServerWait, ask_about
from .errors import Coded, ContinueAsNew, KagziError, Misuse, code_name, error_detail
from .v1 import common_pb2 as common, worker_pb2 as w, workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run
    from .worker import Worker

_PARK_AFTER_NOTHING = 1.0  # seconds before a run that did nothing since its claim is parked
_END_REST = 0.05  # seconds that an end of the code waits for branches that may still make owed calls
_MOST_SAID = 100
_KIND_NAMES: dict[int, str] = {FUNCTION: "step", f.STEP_KIND_SLEEP: "sleep", SIGNAL: "wait for a signal",
                               CHILD: "child run"}


def idle(run: Run) -> None:
    """Parks the run, because nothing can continue by itself."""
    if run.quitted or run.closing or run.endings or run.held or run.starting or run.loop._ready:
        return
    if run.results:
        if run.worker.always_suspend and not run.ops:
            release(run, "suspended")
        return
    if run.asking > run.questions:
        return
    if not run.parked:
        deadlocked(run)
        return
    due = [c.due for c in run.parked if c.due]
    if due and run.issued == 0:
        delay = _PARK_AFTER_NOTHING
    else:
        delay = PARK_SETTLE if due and min(due) - run.now() <= PARK_SETTLE else 0.0
    if delay <= 0:
        park(run)
        return
    generation = run.generation

    def later() -> None:
        if generation == run.generation and not run.quitted and not run.closing and not run.results:
            park(run)

    run.worker.loop.call_later(delay, later)


def alone(run: Run, call: Call) -> bool:
    """Whether nothing else of the run is active, so that the call may park it in one message.

    An unanswered question counts: with its answer the code may go on.
    """
    return (run.working == 1 and call.working and len(run.open) == 1 and (run.cancelled or not run.cancel_asked)
            and not (run.parked or run.results or run.asking or run.endings or run.held or run.starting
                     or run.loop._ready))


def park(run: Run) -> None:
    if run.questions > 0 or run.working or run.starting:
        return
    waits = [c for c in run.parked if isinstance(c, ServerWait) and not c.asked]
    if waits:
        ask_parked(run, waits)
        return
    run.closing = True
    run.send("release_task", lambda _: run.suspend(), park=True)
    if not may_keep(run):
        run.quit("suspended")


def ask_parked(run: Run, calls: list[ServerWait]) -> None:
    """Asks about parked calls, because what happened already does not wake the run. Single children share one."""
    single: dict[str, ChildState] = {}
    each: list[ServerWait] = []
    for call in sorted(calls, key=lambda c: c.order):
        if isinstance(call, ChildrenCall) and len(call.children) == 1:
            each.append(call)
            single.setdefault(call.children[0].run_id, call.children[0])
        else:
            ask_for(run, functools.partial(call.ask, True), call.answered, [call])
    if single:
        children = list(single.values())
        ask_for(run, functools.partial(ask_about, run, children, True, any=True),
                lambda r, op: run.children_ended(r.awaited_children.steps, children, op), each)


def ask_for(run: Run, ask: Callable[[Answer], Op], answered: Callable[[w.SessionResponse, Op], bool],
            calls: list[ServerWait]) -> None:
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
    send_failure(run, error_detail(Coded(
        "every branch of the run waits for another one, or for something outside of the SDK that workflow code may "
        "not wait for, so that none ever goes on", "deadlock")))


def release(run: Run, cause: str, divergence: f.Divergence | None = None) -> None:
    """Gives the run back, and ends its code."""
    run.closing = True
    run.send("release_task", lambda _: run.over(cause), divergence=divergence)
    run.quit(cause)


def give_back(run: Run) -> None:
    """Releases the run unfinished. Results in flight still count."""
    if run.after_leaving(lambda: give_back(run)):
        return
    if not run.ended and not run.closing:
        release(run, "released")
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
        release(run, "paused")


OVERHEAD = 16 << 10
"""Bytes that a kept run counts beside its payloads: its frames, and what the SDK knows of it."""

KEEP_FOR = 600.0  # seconds


class Cache:
    """The parked runs that a worker keeps: at most so many and so many bytes, each for 10 minutes.

    Of too many it drops those that were parked first.
    """

    def __init__(self, worker: Worker, runs: int, size: int) -> None:
        self.worker, self.limit, self.limit_bytes, self.size = worker, runs, size, 0
        self.runs: dict[str, Run] = {}  # by id, the one that was parked first in front
        self._timer: asyncio.TimerHandle | None = None

    def take(self, run_id: str) -> Run | None:
        """Removes a run and returns it; None if it is not kept."""
        run = self.runs.pop(run_id, None)
        if run is not None:
            self.size -= run.size + OVERHEAD
        return run

    def put(self, run: Run) -> None:
        self.drop(run.task.run_id)
        run.keep_until = time.monotonic() + KEEP_FOR
        self.runs[run.task.run_id] = run
        self.size += run.size + OVERHEAD
        while self.runs and (len(self.runs) > self.limit or self.size > self.limit_bytes):
            self.drop(next(iter(self.runs)))
        self._watch()

    def drop(self, run_id: str) -> None:
        run = self.take(run_id)
        if run is not None:
            run.over("suspended")

    def clear(self) -> None:
        for run_id in list(self.runs):
            self.drop(run_id)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        if self._timer is None and self.runs:
            first = next(iter(self.runs.values()))
            self._timer = self.worker.loop.call_later(max(first.keep_until - time.monotonic(), 0.0), self._expire)

    def _expire(self) -> None:
        self._timer = None
        for run_id, run in list(self.runs.items()):
            if run.keep_until > time.monotonic():
                break
            self.drop(run_id)
        self._watch()


def may_keep(run: Run) -> bool:
    """Whether the code may wait in memory: all that it did is recorded, and it owes nothing."""
    worker = run.worker
    return (worker.cache.limit > 0 and worker.session.resumes_runs and worker.session.keeps_order
            and not worker.draining and run.owing == run.bodies_running == 0
            and not (run.afterwards or run.refusals or run.quitted or run.ended or run.main_over or run.held
                     or run.results or run.endings))


def suspend(run: Run) -> None:
    """Ends the time for which this worker holds a run that is parked. Its code waits in memory, or is dropped."""
    if run.ops or not may_keep(run):
        run.over("suspended")
        return
    run.closing = run.away = True
    run.rest()
    for call in run.parked:
        if call.timer is not None:
            call.timer.cancel()
            call.timer = None
    run.activation_ended("suspended")
    run.worker.forget(run, keep=True)


def _waiting(run: Run, s: f.Step) -> Call | None:
    """Returns the sleep or wait for a signal that a step is the record of, if it has no result yet."""
    for call in run.open:
        if call.name == s.name and call.kind == s.kind and call.state == ACTIVE and call.kind != FUNCTION:
            return call
    return None


def _fits(run: Run, s: f.Step) -> bool:
    if s.status not in (f.STEP_STATUS_COMPLETED, f.STEP_STATUS_FAILED) or s.settled <= 0:
        return False
    if s.kind == CHILD:
        return s.name in run.children and run.children[s.name].step is None
    return _waiting(run, s) is not None


def resume(run: Run, task: w.Task) -> bool:
    """Goes on with code that waits in memory; false, and nothing is changed, if it does not fit the task."""
    if (run.quitted or task.base != run.task.lease_token or task.owed_from != run.task.owed_from
            or task.next_history_token or not all(_fits(run, s) for s in task.history)):
        return False
    run.hold(task)
    # Places that the server gives go on from its own count; ours count the operations, too. So all come after those
    # of earlier leases.
    base = run.recorded = run.recorded + run.issued
    run.issued = run.again = run.asking = run.questions = 0
    run.places.clear()
    run.away = run.closing = False
    for call in run.open:
        if isinstance(call, ServerWait):
            call.asked = call.hinted = False
            call.known = time.monotonic()
    for s in task.history:
        run.recorded = max(run.recorded, base + s.settled)
        _take(run, s, base + s.settled)
    if task.cancel_requested:
        run.cancel_asked, run.grace_until = True, unix(task.cancel_grace_until)
    for call in list(run.parked):  # its time may be over by now
        if call.unpark():
            call.woken()
    _order.try_cancel(run)
    run.go()
    return True


def _take(run: Run, s: f.Step, key: int) -> None:
    """Queues what happened to a step while the run was parked."""
    run.history[s.name] = s
    run.size += s.output.ByteSize()
    if s.kind == CHILD:
        child = run.children[s.name]
        child.step, child.key, child.live = s, key, False
        for other in list(run.open):
            if isinstance(other, ChildrenCall) and other.state == ACTIVE:
                _order.children_known(run, other)
        return
    call = _waiting(run, s)
    assert call is not None
    if s.kind == SIGNAL and s.status == f.STEP_STATUS_COMPLETED and not s.signal_timed_out:
        run.unreceived.add(s.name)
    call.record = s
    _order.queue(run, call, key, False)


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
        branch.write_lines()
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
    if run.owing == 0 or run.endings or _order.deliverable(run) or run.loop._ready or run.main_over:
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
    made = [f.Call(name=c.name, kind=c.kind, branch=c.branch.path, detail=c.detail if c.kind in (CHILD, SIGNAL) else "")
            for c in sorted(run.held, key=lambda c: c.number)]
    if run.misfit is not None:
        made.append(run.misfit)
    if not made:
        made.append(f.Call(name=_order.CANCEL_NAME, kind=FUNCTION))
    return f.Divergence(made=made[:_MOST_SAID], owed=owed(run))


def owed(run: Run) -> list[f.Call]:
    steps = sorted((run.history[n] for n, owed in run.uncalled.items() if owed), key=lambda s: s.sequence)
    return [f.Call(name=s.name, kind=s.kind, branch=s.branch, detail=s.signal_name) for s in steps[:_MOST_SAID]]


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
