"""Waits that only the server can end, for signals and child runs; and child runs, as workflow code starts them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, Unpack, cast, overload

from . import codec, errors
from ._calls import ACTIVE, CANCELLED, CHILD, PARK_SETTLE, REPORTED, SIGNAL, Call
from ._convert import unix, wire_duration
from ._define import In, Out, Workflow, branch_of, cleaning
from ._details import encode_input, target
from .errors import DecodeError, RunError, StepError, cancelled_error, error_detail, step_error
from .policy import ChildOptions, StartOptions, start_request
from .v1 import common_pb2 as common, worker_pb2 as w, workflow_pb2 as f

if TYPE_CHECKING:
    from ._loop import Branch
    from ._outbox import Op
    from ._run import Run

ParentClose = Literal["abandon", "cancel", "terminate"]
_PARENT_CLOSE = {"abandon": common.PARENT_CLOSE_POLICY_ABANDON, "cancel": common.PARENT_CLOSE_POLICY_CANCEL,
                 "terminate": common.PARENT_CLOSE_POLICY_TERMINATE}
Answer: TypeAlias = Callable[[w.SessionResponse], None]
_ASK_FIRST, _ASK_MOST = 1.0, 10.0  # seconds between questions about a signal or child


class ServerWait(Call):
    """A wait that only the server can end. It asks when it begins, on a hint, after a while, and before it parks."""

    def __init__(self, run: Run, branch: Branch, name: str, *, detail: str = "", clean: bool = False) -> None:
        super().__init__(run, branch, name, detail=detail, clean=clean)
        self.known = 0.0  # monotonic time of the last answer without a result; 0 before the first
        self.hinted = False
        self.interval, self.late = _ASK_FIRST, PARK_SETTLE

    def ask(self, hold: bool, taken: Answer) -> Op:
        """Asks for the result; taken gets the answer."""
        raise NotImplementedError

    def answered(self, r: w.SessionResponse, op: Op) -> bool:
        """Takes the answer; false if there is no result yet."""
        raise NotImplementedError

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

        op = self.ask(hold, taken)

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

    def ask(self, hold: bool, taken: Answer) -> Op:
        limit = None if self.limit is None else wire_duration(max(self.limit, 0.001))
        return self.send("await_signal", taken, signal_name=self.signal, hold=hold, timeout=limit)

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

    def value(self) -> ChildState:
        if self.outcome == CANCELLED:
            raise cancelled_error(self.name)
        if self.failure is not None:
            raise step_error(self.name, self.failure, 1)
        if self.child is None:
            assert self.record is not None
            self.child = self.run.children[self.name] = child_of(self.record, self.name, self.run.since)
        return self.child


def ask_about(run: Run, children: list[ChildState], hold: bool, taken: Answer, *, any: bool = False) -> Op:
    """Asks for the results of children; any: the answer comes when one of them has ended."""
    return run.send("await_children", taken, child_run_ids=[c.run_id for c in children], any=any, hold=hold)


class ChildrenCall(ServerWait):
    """Waits until all of some child runs have ended."""

    kind = CHILD

    def __init__(self, run: Run, branch: Branch, children: list[ChildState], clean: bool) -> None:
        super().__init__(run, branch, "", clean=clean)
        self.children = children

    def open_children(self) -> list[ChildState]:
        return [c for c in self.children if c.step is None]

    def start(self) -> None:
        still = self.open_children()
        self.known = still[0].known if still else 0.0
        self.woken()

    def ask(self, hold: bool, taken: Answer) -> Op:
        return ask_about(self.run, self.open_children(), hold, taken)

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


class Child(Generic[Out]):
    """A child run that its parent can wait for: ``await child``, or ``await child.result()``."""

    def __init__(self, state: ChildState, type: Any) -> None:
        self._state, self._type = state, type
        self._task: asyncio.Task[Out] | None = None

    @property
    def run_id(self) -> str:
        """The child's run id."""
        return self._state.run_id

    def __await__(self) -> Generator[Any, None, Out]:
        return self.result().__await__()

    def _waiting(self) -> asyncio.Task[Out]:
        if self._task is None:
            self._task = asyncio.ensure_future(self.result())
        return self._task

    async def result(self) -> Out:
        """Waits until the child has ended and returns its result; may be called more than once.

        Raises:
            RunError: It ended without a result. One that continued as new has the result of its last run.
            Cancelled: The run is being cancelled.
        """
        await _ended([self])
        return self._outcome()

    def _outcome(self) -> Out:
        branch = branch_of("the wait for a child")
        run, state, step_ = branch.run, self._state, self._state.step
        assert step_ is not None
        if step_.status == f.STEP_STATUS_FAILED:
            d = step_.error
            raise RunError(d.metadata.get("child_run_id", "") or step_.child_run_id or state.run_id,
                           d.metadata.get("child_status", "") or "FAILED", d.message, type=d.type,
                           code=errors.code_name(d.code), stack=d.stack, step=state.name,
                           workflow_type=state.workflow_type, external_id=state.external_id,
                           with_parent=bool(d.metadata.get("cancelled_with_parent", "")))
        if step_.overridden_by:
            return cast(Out, run.read_record(state.name, step_.output, self._type))
        metadata = dict(step_.output.metadata)
        owner = metadata.pop("child_run_id", "") or step_.child_run_id or state.run_id
        p = common.Payload(data=step_.output.data, metadata=metadata)
        try:
            return cast(Out, codec.decode(run.codec, p, codec.PayloadInfo("output", run_id=owner), self._type))
        except errors.KagziError as e:
            raise run.reject(DecodeError(f"result of child {state.name}: {e}", getattr(e, "path", ""),
                                         "unreadable")) from e


async def _ended(children: list[Child[Any]]) -> None:
    branch = branch_of("the wait for children")
    await branch.run.make(ChildrenCall(branch.run, branch, [c._state for c in children], cleaning.get()))


async def wait_all(children: Iterable[Child[Out]]) -> list[Out]:
    """Waits until all children have ended, and returns their results in order. It wakes the run only once.

    Raises:
        RunError: One child ended without a result.
        ExceptionGroup: Several did; it has a RunError for each.
    """
    them = list(children)
    await _ended(them)
    outs, failures = [], []
    for c in them:
        try:
            outs.append(c._outcome())
        except RunError as e:
            failures.append(e)
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(them)} children ended without a result", failures)
    return outs


@overload
async def start_child(name: str, workflow: Workflow[In, Out], input: In = ..., *, id: str = ...,
                      parent_close: ParentClose = ..., **options: Unpack[ChildOptions]) -> Child[Out]: ...


@overload
async def start_child(name: str, workflow: str, input: Any = ..., *, id: str = ..., parent_close: ParentClose = ...,
                      type: Any = ..., **options: Unpack[ChildOptions]) -> Child[Any]: ...


async def start_child(name: str, workflow: Workflow[Any, Any] | str, input: Any = None, *, id: str = "",
                      parent_close: ParentClose = "abandon", type: Any = Any,
                      **options: Unpack[ChildOptions]) -> Child[Any]:
    """Starts a run as a child of this one; it returns when the start is on the server's disk.

    Args:
        name: Name of the step in this run; a replay returns the same child.
        workflow: A workflow, or the name of a type.
        input: Its input.
        id: External id; if an open run has it, the start fails with the code CONFLICT.
        parent_close: What happens to an open child when this run ends.
        type: Type of the result, if the workflow is given by its name (plain JSON).
        **options: See ChildOptions.

    Raises:
        StepError: The server refused the start; it has the server's code. Every replay raises the same.
        Cancelled: The run is being cancelled.
    """
    branch = branch_of(f"the start of child {name}")
    run = branch.run
    kind, queue, own = target(workflow)
    result = own if isinstance(workflow, Workflow) else type
    if parent_close not in _PARENT_CLOSE:
        raise errors.ConfigError(f"parent_close is {parent_close!r}, want abandon, cancel or terminate")

    def request() -> dict[str, Any]:
        p = encode_input(run.codec, input, kind, id)
        start = start_request(run.task.namespace, kind, p, queue or run.task.task_queue, run.now(),
                              cast(StartOptions, {**options, "id": id, "reuse": "reject"}))
        start.parent_run_id = run.task.run_id
        return {"child": start, "parent_close_policy": _PARENT_CLOSE[parent_close]}

    state: ChildState = await run.make(ChildCall(run, branch, name, kind, request, cleaning.get()))
    state.workflow_type, state.external_id = kind, id
    return Child(state, result)


@overload
async def run_child(name: str, workflow: Workflow[In, Out], input: In = ..., *, id: str = ...,
                    parent_close: ParentClose = ..., **options: Unpack[ChildOptions]) -> Out: ...


@overload
async def run_child(name: str, workflow: str, input: Any = ..., *, id: str = ..., parent_close: ParentClose = ...,
                    type: Any = ..., **options: Unpack[ChildOptions]) -> Any: ...


async def run_child(name: str, workflow: Any, input: Any = None, *, id: str = "", parent_close: ParentClose = "abandon",
                    type: Any = Any, **options: Unpack[ChildOptions]) -> Any:
    """Calls start_child, and returns the child's result."""
    child = await start_child(name, workflow, input, id=id, parent_close=parent_close, type=type, **options)
    return await child.result()
