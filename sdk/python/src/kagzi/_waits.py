"""Waits that only the server can end: for signals and child runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import codec
from ._calls import ACTIVE, CANCELLED, CHILD, PARK_SETTLE, REPORTED, SIGNAL, Call
from ._convert import unix, wire_duration
from .errors import DecodeError, StepError, cancelled_error, error_detail, step_error
from .v1 import common_pb2 as common
from .v1 import worker_pb2 as w
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._naming import Branch
    from ._outbox import Op
    from ._run import Run

_ASK_FIRST, _ASK_MOST = 1.0, 10.0  # seconds between questions about a signal or child


class ServerWait(Call):
    """A wait that only the server can end. It asks when it begins, on a hint, after a while, and before it parks."""

    def __init__(self, run: Run, branch: Branch, name: str, *, detail: str = "", clean: bool = False) -> None:
        super().__init__(run, branch, name, detail=detail, clean=clean)
        self.known = 0.0  # monotonic time of the last answer without a result; 0 before the first
        self.hinted = False
        self.interval, self.late = _ASK_FIRST, PARK_SETTLE

    def ask(self, hold: bool) -> Callable[[Callable[[w.SessionResponse], None]], Op]:
        """Returns what sends the question for the result, and takes what gets the answer."""
        raise NotImplementedError

    def answered(self, r: w.SessionResponse, op: Op) -> bool:
        """Takes the answer; false if there is no result yet."""
        raise NotImplementedError

    def start(self) -> None:
        self.woken()

    def woken(self) -> None:
        run = self.run
        hold = not run.alone(self)
        overdue = self.due > 0 and run.now() >= self.due
        if hold and not overdue and not self.hinted and self.known and time.monotonic() - self.known < _ASK_FIRST:
            self.pause()
            return
        self.hinted = False

        def taken(r: w.SessionResponse) -> None:
            got = self.answered(r, op)
            self.known = time.monotonic()
            self.asked = self.asked or not got
            if self.state != ACTIVE:
                return
            if not got and not hold:
                self.pause()
                run.suspend()
            elif got or self.hinted:
                self.known = 0.0
                self.woken()
            else:
                self.pause()

        op = self.ask(hold)(taken)

    def pause(self) -> None:
        """Waits until it is time to ask again."""
        pause = self.interval
        self.interval = min(2 * self.interval, _ASK_MOST)
        if self.due:
            left = self.due - self.run.now()
            if left > PARK_SETTLE:
                pause = min(pause, left)
            else:
                pause, self.late = self.late, min(2 * self.late, _ASK_MOST)
        self.park(pause)

    def hint(self) -> None:
        """Takes the server's hint that there may be a result."""
        self.hinted = True
        if self.parked:
            self._wake()


class SignalCall(ServerWait):
    """Waits for a signal."""

    kind = SIGNAL

    def __init__(self, run: Run, branch: Branch, name: str, result: Any, limit: float | None, clean: bool) -> None:
        super().__init__(run, branch, name, detail=name, clean=clean)
        self.signal, self.result, self.limit = name, result, limit
        self.answer: w.AwaitSignalResponse | None = None

    def start(self) -> None:
        if self.record is not None:
            self.known = self.run.since
            if self.record.HasField("wake_up_at"):
                self.due = unix(self.record.wake_up_at)
        elif self.limit is not None:
            self.due = self.run.now() + max(self.limit, 0.0)
        self.woken()

    def ask(self, hold: bool) -> Callable[[Callable[[w.SessionResponse], None]], Op]:
        limit = None if self.limit is None else wire_duration(max(self.limit, 0.001))
        return lambda taken: self.send("await_signal", taken, signal_name=self.signal, hold=hold, timeout=limit)

    def answered(self, r: w.SessionResponse, op: Op) -> bool:
        answer = r.awaited_signal
        arrived = answer.HasField("payload")
        if not arrived and not answer.timed_out:
            return False
        if arrived and self.run.worker.session.keeps_order:
            self.run.unreceived.add(self.name)
        if self.state == ACTIVE:
            self.answer = answer
            self.run.report(self, op)
        return True

    def value(self) -> Any:
        if self.outcome == CANCELLED:
            raise cancelled_error(self.name)
        if self.outcome == REPORTED and self.answer is not None:
            if self.answer.timed_out:
                raise self._timed_out()
            return self._read(self.answer.payload, "")
        assert self.record is not None
        if self.record.status == f.STEP_STATUS_FAILED:
            raise step_error(self.name, self.record.error, self.record.attempt_number)
        if self.record.signal_timed_out:
            raise self._timed_out()
        return self._read(self.record.output, self.record.overridden_by)

    def _timed_out(self) -> StepError:
        detail = common.ErrorDetail(message=f"no signal {self.signal} within {max(self.limit or 0.0, 0.0):g} s",
                                    code=common.ERROR_CODE_TIMEOUT, non_retryable=True)
        return step_error(self.name, detail, 0)

    def _read(self, p: common.Payload, overridden: str) -> Any:
        run = self.run
        try:
            if run.codec is None:
                return codec.decode(None, p, codec.PayloadInfo("signal"), self.result)
            if overridden:
                return codec.decode(run.codec, p, run.payload_info("step", self.name), self.result)
            starts = dict.fromkeys((codec.start_of_signals(run.start_digest(), run.task.input), run.start_digest()))
            for n, start in enumerate(starts):
                try:
                    info = codec.PayloadInfo("signal", start=start, step=self.signal)
                    return codec.decode(run.codec, p, info, self.result)
                except DecodeError:
                    if n == len(starts) - 1:
                        raise
        except DecodeError as e:  # the sender's fault, not the code's
            raise StepError(self.name, f"signal {self.signal}: {e}", code="INVALID_ARGUMENT",
                            non_retryable=True) from e


class ChildState:
    """A child run that its parent can wait for."""

    def __init__(self, name: str, run_id: str, known: float) -> None:
        self.name, self.run_id, self.known = name, run_id, known
        self.workflow_type = self.external_id = ""
        self.step: f.Step | None = None  # with the outcome; None before
        self.key, self.live = 0, False


def child_of(step: f.Step, name: str, known: float) -> ChildState:
    c = ChildState(name, step.child_run_id, known)
    c.key = step.settled
    if step.status in (f.STEP_STATUS_COMPLETED, f.STEP_STATUS_FAILED):
        c.step = step
    return c


class ChildCall(Call):
    """Starts a child run."""

    kind = CHILD

    def __init__(self, run: Run, branch: Branch, name: str, workflow_type: str,
                 request: Callable[[], dict[str, Any]], clean: bool) -> None:
        super().__init__(run, branch, name, detail=workflow_type, clean=clean)
        self.request = request
        self.child: ChildState | None = None

    def start(self) -> None:
        run = self.run
        self.in_code = True
        try:
            request = self.request()
        except Exception as e:
            self._refuse(error_detail(e, stack=False))
            return

        def answered(r: w.SessionResponse) -> None:
            started = r.started_child
            child = child_of(started.step, self.name, time.monotonic())
            child.run_id = started.child_run_id or child.run_id
            child.key, child.live = run.recorded + op.index, True
            self.child = run.children[self.name] = child
            run.hand(self, REPORTED)

        op = self.send("start_child", answered, self._refuse, **request)

    def _refuse(self, d: common.ErrorDetail) -> None:
        """Records that the server refused the start, so that every replay raises the same error."""
        d = common.ErrorDetail(code=d.code, type=d.type, message=d.message, non_retryable=True,
                               metadata={"step": self.name})
        self.failure = d
        self.run.judge(self, d)
        self.run.hand(self, REPORTED)

    def woken(self) -> None:
        pass

    def value(self) -> ChildState:
        if self.outcome == CANCELLED:
            raise cancelled_error(self.name)
        if self.failure is not None:
            raise step_error(self.name, self.failure, 1)
        if self.child is None:
            assert self.record is not None
            self.child = self.run.children[self.name] = child_of(self.record, self.name, self.run.since)
        return self.child


class ChildrenCall(ServerWait):
    """Waits until all of some child runs have ended."""

    kind = CHILD

    def __init__(self, run: Run, branch: Branch, children: list[ChildState], clean: bool) -> None:
        super().__init__(run, branch, "", clean=clean)
        self.children = children

    def open_children(self) -> list[ChildState]:
        """Returns the children without an outcome."""
        return [c for c in self.children if c.step is None]

    def start(self) -> None:
        still = self.open_children()
        self.known = still[0].known if still else 0.0
        self.woken()

    def ask(self, hold: bool) -> Callable[[Callable[[w.SessionResponse], None]], Op]:
        return self.ask_about(self.open_children(), False, hold)

    def ask_about(self, children: list[ChildState], first: bool,
                  hold: bool) -> Callable[[Callable[[w.SessionResponse], None]], Op]:
        """Is ask for some of the children; first: the answer comes when one has ended."""
        return lambda taken: self.run.send("await_children", taken, child_run_ids=[c.run_id for c in children],
                                           any=first, hold=hold)

    def answered(self, r: w.SessionResponse, op: Op) -> bool:
        return self.run.children_ended(r.awaited_children.steps, self.children, op)

    def value(self) -> None:
        if self.outcome == CANCELLED:
            raise cancelled_error(self.children[0].name if self.children else "children")


def hint(run: Run, step: str) -> None:
    """Takes the server's hint that a wait for a step may be over."""
    for call in list(run.open):
        if isinstance(call, ServerWait) and (call.name == step or (isinstance(call, ChildrenCall) and any(
                c.name == step for c in call.children))):
            call.hint()
