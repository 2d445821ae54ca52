"""The calls of workflow code: steps, sleeps, waits for signals and child runs, and how each takes effect."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _data, _trace, codec
from ._convert import MAX_DELAY, unix, wire_duration, wire_time
from ._intercept import StepAttempt
from ._loop import current
from .errors import Coded, DecodeError, KagziError, cancelled_error, error_detail, step_error
from .v1 import common_pb2 as common, worker_pb2 as w, workflow_pb2 as f

if TYPE_CHECKING:
    from ._loop import Branch
    from ._outbox import Op
    from ._run import Run

FUNCTION, SLEEP, CHILD, SIGNAL = (f.STEP_KIND_FUNCTION, f.STEP_KIND_SLEEP, f.STEP_KIND_CHILD_WORKFLOW,
                                  f.STEP_KIND_SIGNAL)
HELD, ACTIVE, QUEUED, OVER = range(4)  # where a call stands
RECORDED, REPORTED, CANCELLED = range(3)  # how it ended

PARK_SETTLE = 0.02  # seconds: a timer that is due within this is waited for
ANNOUNCE_AFTER = 0.25  # seconds after which the server is told of a running step
_MARGIN = 2.0  # seconds that the server gives a step more than the worker does
HANGS_AFTER = 10.0  # seconds


class Call:
    """A call of workflow code that waits for a result."""

    kind = FUNCTION
    # Defaults are of the class, because there is a call for each step.
    record: f.Step | None = None
    number = 0
    state, outcome = HELD, RECORDED
    working = False  # it goes on by itself
    running = False  # its step code runs
    failing = abandoned = in_code = parked = asked = False
    failure: common.ErrorDetail | None = None
    due = 0.0  # by the server's clock; 0 for none
    timer: asyncio.TimerHandle | None = None
    future: asyncio.Future[None] | None = None

    def __init__(self, run: Run, branch: Branch, name: str, *, detail: str = "", clean: bool = False) -> None:
        self.run, self.branch, self.detail, self.clean = run, branch, detail, clean
        self.written = self.name = name

    @property
    def order(self) -> tuple[tuple[int, ...], int]:
        """Place among calls that end with one result: by branch, then in the order of calling."""
        return self.branch.ordinals, self.number

    def start(self) -> None:
        """Takes effect."""
        raise NotImplementedError

    def woken(self) -> None:
        """Goes on after a wait for a time."""

    def value(self) -> Any:
        """Returns the result for the code, or raises its error."""
        raise NotImplementedError

    def park(self, pause: float) -> None:
        """Waits for some seconds as a call that need not keep the run on its worker."""
        self.set_working(False)
        self.parked = True
        self.run.parked[self] = None
        self.timer = self.run.worker.loop.call_later(max(pause, 0.0), self._wake)

    def halt(self) -> None:
        """Waits for good: in a replay without a server a call that has no recorded result does not take effect."""
        self.set_working(False)
        self.parked = self.asked = True
        self.run.parked[self] = None

    def _wake(self) -> None:
        if not self.run.closing and self.unpark():  # nothing goes behind the release of the run
            self.woken()
            self.run.go()

    def unpark(self) -> bool:
        """Ends the wait; false if there is none."""
        if not self.parked:
            return False
        self.parked = False
        self.run.parked.pop(self, None)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.state == ACTIVE:
            self.set_working(True)
        return self.state == ACTIVE

    def set_working(self, working: bool) -> None:
        """Counts the call as one that goes on by itself, or not."""
        if working != self.working:
            self.working = working
            self.run.working += 1 if working else -1
            self.run.generation += 1

    def send(self, kind: str, answer: Callable[[w.SessionResponse], None] | None = None,
             refused: Callable[[common.ErrorDetail], None] | None = None, /, **fields: Any) -> Op:
        """Sends an operation about the call's own step; see Run.send."""
        return self.run.send(kind, answer, refused, step_name=self.name, branch=self.branch.path, **fields)


@dataclass(eq=False, slots=True)
class StepInfo:
    """What code of a step can know about itself."""

    run: Run
    name: str
    attempt: int
    cancelled: bool = False
    since: float = 0.0  # monotonic time of the start of the body; 0 before
    task: asyncio.Task[Any] | None = None  # until the code has ended
    on_loop: bool = False  # its code is async
    done: bool = False
    announce: Callable[[], asyncio.Future[str]] | None = None

    async def announced(self) -> str:
        """Tells the server that the code runs, and returns the id of the attempt; on the worker's loop."""
        assert self.announce is not None
        return await asyncio.shield(self.announce())


step_info: contextvars.ContextVar[StepInfo | None] = contextvars.ContextVar("kagzi_step", default=None)


def _enter_step(info: StepInfo) -> None:
    current.set(None)
    step_info.set(info)


class YoungSteps:
    """The steps that began less than ANNOUNCE_AFTER ago. They share a timer, because most end before it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._timer = loop, False
        self._steps: deque[tuple[float, StepCall, StepInfo]] = deque()

    def add(self, call: StepCall, info: StepInfo) -> None:
        """Lets a step tick once when ANNOUNCE_AFTER has passed."""
        self._steps.append((self._loop.time() + ANNOUNCE_AFTER, call, info))
        if not self._timer:
            self._timer = True
            self._loop.call_later(ANNOUNCE_AFTER, self._look)

    def _look(self) -> None:
        while self._steps and (self._steps[0][2].done or self._steps[0][0] <= self._loop.time()):
            _, call, info = self._steps.popleft()
            call.tick(info)
        self._timer = bool(self._steps)
        if self._steps:
            self._loop.call_at(self._steps[0][0], self._look)


class StepCall(Call):
    """Runs a function, in a thread or on the worker's loop, and records its result."""

    attempt = 1
    last: common.ErrorDetail | None = None
    got: Any = None
    info: StepInfo | None = None
    started = 0.0  # by the server's clock
    announced: asyncio.Future[str] | None = None
    wants_after = 0  # operations up to this index must be durable before the body starts

    def __init__(self, run: Run, branch: Branch, name: str, fn: functools.partial[Any], is_async: bool, result: Any,
                 retry: common.RetryPolicy | None, timeout: float, clean: bool) -> None:
        super().__init__(run, branch, name, clean=clean)
        self.fn, self.is_async, self.result, self.retry = fn, is_async, result, retry
        self.timeout = timeout or run.step_timeout

    def start(self) -> None:
        record = self.record
        if record is not None:
            self.attempt = record.attempt_number + 1
            if record.status == f.STEP_STATUS_PENDING:
                self.last = record.error
                self._retry_at(unix(record.retry_at))
                return
        self.run.want_body(self)

    def _retry_at(self, due: float) -> None:
        left = due - self.run.now()
        if left <= 0:
            self.run.want_body(self)
            return
        self.due = due
        self.park(left)

    def woken(self) -> None:
        self._retry_at(self.due)

    def body(self) -> None:
        worker, run = self.run.worker, self.run
        self.running = True
        run.bodies_running += 1
        info = self.info = StepInfo(run, self.name, self.attempt, announce=self.announce)
        self.announced = None
        fn, is_async = self.fn, self.is_async
        other = worker.replaced.get(self.written)
        if other is not None:
            fn, is_async = functools.partial(other, *fn.args, **fn.keywords), inspect.iscoroutinefunction(other)
        context = (self.branch.context or contextvars.copy_context()).copy()
        context.run(_enter_step, info)
        worker.steps_running[info] = None
        self.started = run.now()
        if is_async:
            info.since, info.on_loop = time.monotonic(), True
            task = info.task = worker.loop.create_task(self._run_async(fn), context=context)
            task.add_done_callback(functools.partial(self._async_done, info))
        else:
            worker.pool.submit(self._run_sync, fn, info, context)
        if self.timeout < ANNOUNCE_AFTER:
            self.timer = worker.loop.call_later(self.timeout, self.tick, info)
        else:
            worker.young.add(self, info)

    async def _run_async(self, fn: Callable[[], Any]) -> Any:
        try:
            if not self._wrapped:
                return self._encoded(await fn())
            with self._around():
                return self._encoded(await fn())
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as e:  # SystemExit, too: it would end the worker
            return e

    def _async_done(self, info: StepInfo, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._done(info, asyncio.CancelledError("the step's code was cancelled"))
        else:
            self._done(info, task.exception() or task.result())

    def _run_sync(self, fn: Callable[[], Any], info: StepInfo, context: contextvars.Context) -> None:
        info.since = time.monotonic()
        if info.cancelled:
            result: Any = asyncio.CancelledError("the step was ended before its code began")
        else:
            self.started = self.run.now()
            try:
                result = context.run(self._call_sync, fn)
            except BaseException as e:
                result = e
        try:
            self.run.worker.loop.call_soon_threadsafe(self._done, info, result)
        except RuntimeError:
            pass  # the worker has ended

    @property
    def _wrapped(self) -> bool:
        return self.run.span is not None or bool(self.run.worker.interceptors)

    @contextlib.contextmanager
    def _around(self) -> Iterator[None]:
        """Is entered around the code of an attempt: its span, and the interceptors."""
        run, number = self.run, self.attempt
        attempt = StepAttempt(run.task.run_id, run.task.workflow_type, self.name, number)
        with contextlib.ExitStack() as stack:
            if run.span is not None:
                stack.enter_context(_trace.step(run.span, self.name, number))
            for one in run.worker.interceptors:
                stack.enter_context(one.step(attempt))
            yield
            return
        raise KagziError(f"an interceptor hides the failure of step {self.name}") from None

    def _call_sync(self, fn: Callable[[], Any]) -> Any:
        if not self._wrapped:
            return self._value_of(fn)
        with self._around():
            return self._value_of(fn)

    def _value_of(self, fn: Callable[[], Any]) -> Any:
        value = fn()
        if inspect.isawaitable(value):
            close = getattr(value, "close", None)
            if close is not None:
                close()
            raise TypeError(f"step {self.name}: its code returns an awaitable, so it has to be an async function")
        return self._encoded(value)

    def _encoded(self, value: Any) -> tuple[Any, common.Payload]:
        """Returns the result as a replay will read it, and its payload."""
        try:
            data = _data.encode(value)
            back = _data.read_back(value, data, self.result)
            return back, codec.pack(self.run.codec, data, self.run.payload_info("step", self.name))
        except DecodeError as e:
            raise DecodeError(f"result: {e}", e.path) from e

    def tick(self, info: StepInfo) -> None:
        """Announces a step that takes long, and ends one that takes too long."""
        if info is not self.info or info.done or self.run.closing or self.run.ended:
            return
        passed = time.monotonic() - info.since if info.since else 0.0
        if passed < self.timeout - 0.0005:
            if info.since and passed >= ANNOUNCE_AFTER - 0.0005:
                self.announce()
                left = self.timeout - passed
            else:
                left = min(ANNOUNCE_AFTER, self.timeout) - passed
            self.timer = self.run.worker.loop.call_later(max(left, 0.001), self.tick, info)
            return
        self.end_body(info)
        self._finished()
        error = Coded(f"step {self.name} timed out after {self.timeout:g} s", "", "TIMEOUT", final=False)
        self._fail(error_detail(error))
        self.run.go()

    def announce(self) -> asyncio.Future[str]:
        """Tells the server once that the code runs; the future gets the attempt's id. It ends with the lease."""
        if self.announced is None:
            told = self.announced = self.run.worker.loop.create_future()
            if self.run.ended:
                told.cancel()

            def answered(r: w.SessionResponse) -> None:
                if not told.done():
                    told.set_result(r.begun_step.step_id)

            self.send("begin_step", answered, kind=FUNCTION, retry_policy=self.retry, started=self.started,
                      start_to_close_timeout_ms=int((min(self.timeout, MAX_DELAY - _MARGIN) + _MARGIN) * 1000))
        return self.announced

    def end_body(self, info: StepInfo) -> None:
        """Tells the code that nobody waits for it any more."""
        info.cancelled = True
        if info.task is not None:
            info.task.cancel()
        self.run.worker.look_after(info)

    def _finished(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.info = None
        self.run.bodies_running -= 1

    def _done(self, info: StepInfo, result: Any) -> None:
        info.done, info.task = True, None
        self.run.worker.steps_running.pop(info, None)
        self.run.worker.steps_ended.append((info.name, time.monotonic()))
        if info is not self.info:
            return
        self._finished()
        if self.run.ended or self.run.closing:
            return
        if isinstance(result, BaseException):
            detail = error_detail(result)
            if self.run.cancelled and not self.clean and not detail.non_retryable:
                detail.code, detail.non_retryable = common.ERROR_CODE_CANCELLED, True
                detail.retry_after_ms = 0
            self._fail(detail)
        else:
            self.got, payload = result
            self.run.size += payload.ByteSize()
            self.run.warn_large("step result", payload, self.name)
            self.run.report(self, self.send("complete_step", output=payload, started=self.started))
        self.run.pause_if_idle()
        self.run.go()

    def _fail(self, detail: common.ErrorDetail) -> None:
        run, number = self.run, self.attempt
        self.last = detail
        hold = not run.alone(self)

        def answered(r: w.SessionResponse) -> None:
            failed = r.failed_step
            run.worker.log_failed_step(run, self.name, number, detail, failed)
            self.running = False
            if not failed.scheduled_retry:
                self.failure = detail
                run.report(self, op)
            elif hold and run.ends_with(self):
                run.hand(self, CANCELLED)
            else:
                self.attempt += 1
                in_ = failed.retry_in
                due = run.now() + in_.seconds + in_.nanos / 1e9 if failed.HasField("retry_in") else unix(
                    failed.retry_at)
                if hold:
                    self._retry_at(due)
                else:
                    self.due = due
                    self.park(due - run.now())
                    run.suspend()

        op = self.send("fail_step", answered, error=detail, retry_policy=self.retry, hold=hold, started=self.started)

    def value(self) -> Any:
        if self.outcome == CANCELLED:
            raise cancelled_error(self.name, self.last, self.attempt - 1)
        if self.outcome == RECORDED and self.record is not None and not self.failing:
            if self.record.status == f.STEP_STATUS_FAILED:
                raise step_error(self.name, self.record.error, self.record.attempt_number)
            return self.run.read_record(self.name, self.record.output, self.result)
        if self.failure is not None:
            raise step_error(self.name, self.failure, self.attempt)
        return self.got


class SleepCall(Call):
    kind = SLEEP

    def __init__(self, run: Run, branch: Branch, name: str, left: float, until: float, clean: bool) -> None:
        super().__init__(run, branch, name, detail="passed" if left <= 0 else "", clean=clean)
        self.left, self.until = left, until

    def start(self) -> None:
        if self.record is not None and self.record.HasField("wake_up_at"):
            self.due = unix(self.record.wake_up_at)
            self.woken()
            return
        run, hold = self.run, not self.run.alone(self)

        def answered(r: w.SessionResponse) -> None:
            if r.sleeping.settled > 0:
                run.report(self, op)
                return
            self.due = self.until or run.now() + self.left
            if hold:
                self.woken()
            else:
                self.park(self.due - run.now())
                run.suspend()

        until = self.until or (run.now() if self.left <= 0 else 0.0)
        op = self.send("sleep", answered, hold=hold, until=wire_time(until) if until else None,
                       duration=None if until else wire_duration(max(self.left, 0.001)))

    def woken(self) -> None:
        run, left = self.run, self.due - self.run.now()
        if left > 0:
            self.park(left)
            return
        op = self.send("sleep", lambda _: run.report(self, op), hold=True, over=True)

    def value(self) -> None:
        """Returns also if the cancellation ended the sleep: the next call raises then."""
