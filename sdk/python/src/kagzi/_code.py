"""What a worker runs: functions of workflows, threads for steps, the build, the watch over blocking code, and logs."""

from __future__ import annotations

import functools
import hashlib
import logging
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from . import codec as codecs
from ._calls import HANGS_AFTER, StepInfo
from ._convert import clean_text, printable
from ._define import Workflow
from ._intercept import Activation
from ._outbox import Op
from .errors import DecodeError, KagziError
from .v1 import common_pb2 as common, worker_pb2 as w, workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run
    from .worker import Worker

_BLOCKED_AFTER = 5.0  # seconds
_NOTE_INTERVAL = 0.25  # seconds


class WorkflowCode:
    """The function of a workflow type, with its types."""

    def __init__(self, workflow: Workflow[Any, Any]) -> None:
        self.name, self.fn = workflow.name, workflow.fn
        self.input, self.takes = workflow.input_type, workflow.takes_input

    async def run(self, run: Run) -> common.Payload:
        """Decodes the input, calls the function, and encodes its result."""
        task = run.task
        args = []
        if self.takes:
            by_server = bool(task.failed_run_id) and b"kagzi/workflow.failed" in task.input.data  # of a failure handler
            own = None if by_server else run.codec
            try:
                args.append(codecs.decode(own, task.input, codecs.input_info(task.workflow_type, task.external_id),
                                          self.input))
            except DecodeError as e:
                raise DecodeError(f"input of workflow type {self.name}: {e}", e.path, "unreadable") from e
        output = await self._within(run, functools.partial(self.fn, *args))
        try:
            p = codecs.encode(run.codec, output, codecs.PayloadInfo("output", run_id=task.run_id))
        except DecodeError as e:
            raise DecodeError(f"output of workflow type {self.name}: {e}", e.path) from e
        run.warn_large("output", p, self.name)
        return p

    @staticmethod
    async def _within(run: Run, fn: Callable[[], Awaitable[Any]]) -> Any:
        """Calls the function within the interceptors."""
        error: Exception | None = None

        async def innermost() -> Any:
            nonlocal error
            try:
                return await fn()
            except Exception as e:
                error = e
                raise

        task, call = run.task, innermost
        if not run.worker.interceptors:
            return await fn()
        about = Activation(task.run_id, task.workflow_type, task.attempt, bool(run.history), run.replaying)
        for one in reversed(run.worker.interceptors):
            call = functools.partial(one.run, about, call)
        output = await call()
        if error is not None:
            raise KagziError("an interceptor hides the failure of the workflow function") from error
        return output


class Watch:
    """What runs on the worker's loop now, for the report of code that blocks it."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.since = 0.0
        self.thread = 0  # of the worker's loop
        self._reported: dict[str, tuple[float, float]] = {}

    def blocked(self) -> list[f.BlockedCode]:
        """Returns the code that has blocked for some seconds, for the server; called by the connection's thread."""
        run, since = self.run, self.since
        passed = time.monotonic() - since
        if run is None or passed < _BLOCKED_AFTER:
            return []
        code = f.BlockedCode(run_id=run.task.run_id, stack=clean_text(_stack(self.thread), 4 << 10))
        code.since.FromDatetime(datetime.fromtimestamp(time.time() - passed, UTC))
        return [code]

    def look(self, log: logging.Logger) -> None:
        """Logs code that has blocked for some seconds, with its stack; called by the connection's thread."""
        run, since = self.run, self.since
        if run is None or time.monotonic() - since < _BLOCKED_AFTER:
            return
        at, pause = self._reported.get(run.task.run_id, (0.0, 30.0))
        if time.monotonic() - at < pause:
            return
        self._reported[run.task.run_id] = (time.monotonic(), 2 * pause)
        log.warning("workflow code of run %s (type %s) has blocked for %.0f s outside of SDK calls, and with it all "
                    "runs of this worker; do the work in a step. Stack:\n%s", run.task.run_id, run.task.workflow_type,
                    time.monotonic() - since, clean_text(_stack(self.thread), 16 << 10))


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)) if frame is not None else ""


def own_build(workflows: Iterable[Workflow[Any, Any]]) -> str:
    """Returns a hash of the interpreter's version and of the modules that no package installed; empty if unreadable."""
    h = hashlib.sha256(sys.version.encode())
    files = {getattr(sys.modules.get(one.fn.__module__), "__file__", None) or "" for one in workflows}
    outside = tuple(sysconfig.get_paths().values())
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if file.endswith(".py") and not file.startswith(outside):
            files.add(file)
    for file in sorted(files):
        try:
            with open(file, "rb") as source:
                h.update(source.read())
        except OSError:
            return ""
    return h.hexdigest()[:32]


class Pool:
    """Runs functions in at most so many daemon threads, which are made when they are needed."""

    def __init__(self, limit: int) -> None:
        self._limit, self._threads, self._idle = limit, 0, 0
        self._lock = threading.Lock()
        self._work: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()

    def submit(self, fn: Callable[..., Any], *args: Any) -> None:
        """Runs a function, which must not raise, as soon as a thread is free."""
        with self._lock:
            self._idle -= 1
            grow = self._idle < 0 and self._threads < self._limit
            if grow:
                self._threads += 1
                self._idle += 1
            number = self._threads
        self._work.put((fn, args))
        if grow:
            threading.Thread(target=self._serve, name=f"kagzi-step-{number}", daemon=True).start()

    def close(self) -> None:
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work[0](*work[1])
            del work  # it holds the run
            with self._lock:
                self._idle += 1


def note(run: Run, text: str) -> None:
    if run.owing > 0 or run.ended or run.away or run.replaying:
        return
    run._note = text
    wait = run._note_next - time.monotonic()
    if wait <= 0:
        flush(run)
    elif run._note_timer is None:
        run._note_timer = run.worker.loop.call_later(wait, functools.partial(flush, run))


def flush(run: Run) -> None:
    text = run._note
    rest(run)
    if text is None or run.ended:
        return
    run._note_next = time.monotonic() + _NOTE_INTERVAL
    run.worker.session.post(Op(w.SessionRequest(set_note=w.SetNote(
        run_id=run.task.run_id, lease_token=run.task.lease_token, note=text)), "set_note"))


def rest(run: Run) -> None:
    """Drops a note that was not sent, as the run is parked or over."""
    run._note = None
    if run._note_timer is not None:
        run._note_timer.cancel()
        run._note_timer = None


def warn_large(run: Run, what: str, p: common.Payload, name: str) -> None:
    """Logs a payload that is better stored elsewhere."""
    if len(p.data) > 256 << 10:
        run.worker.log.warning("large %s of %s: %d bytes; each activation of the run transfers it whole", what, name,
                               len(p.data))


def late_beat(self: Worker, late: float) -> None:
    due = time.monotonic() - late
    names = sorted({info.name for info in list(self.steps_running) if info.since}
                   | {name for name, ended in list(self.steps_ended) if ended >= due})  # its end may come first
    self.log.warning("a heartbeat came %.1f s late: code kept the interpreter to itself; running steps: %s. The "
                     "lease ends after %.0f s without one", late, ", ".join(names) or "none", self.session.lease)


def log_failed_step(self: Worker, run: Run, name: str, number: int, d: common.ErrorDetail,
                    r: w.FailStepResponse) -> None:
    level, text = logging.WARNING, "failed for good"
    if r.scheduled_retry:
        text = f"failed; it will be retried in {r.retry_in.seconds + r.retry_in.nanos / 1e9:.3g} s"
    elif d.code == common.ERROR_CODE_CANCELLED:
        level, text = logging.INFO, "ended because its run is being cancelled"
    self.log.log(level, "step %s %s (attempt %d): %s", name, text, number, _failure(d), extra=run_extra(run, name))


def log_failed_run(self: Worker, run: Run, d: common.ErrorDetail, r: w.FailWorkflowResponse) -> None:
    extra = run_extra(run)
    if r.status in (f.WORKFLOW_STATUS_PENDING, f.WORKFLOW_STATUS_SLEEPING):
        self.log.warning("run %s failed; it will be retried: %s", run.task.run_id, _failure(d), extra=extra)
    elif r.status == f.WORKFLOW_STATUS_FAILED:
        self.log.error("run %s of type %s failed: %s", run.task.run_id, run.task.workflow_type, _failure(d),
                       extra=extra)


def look_after(self: Worker, info: StepInfo) -> None:
    """Waits for code of a step that nobody waits for any more, and logs it if it does not end."""
    def look() -> None:
        if info in self.steps_running:
            self.log.warning("code of step %s (run %s, attempt %d) still runs %.0f s after it was ended; it should "
                             "look at kagzi.step_cancelled()", info.name, info.run.task.run_id, info.attempt,
                             HANGS_AFTER)

    if not info.done:
        self.loop.call_later(HANGS_AFTER, look)


def run_extra(run: Run, step: str = "") -> dict[str, Any]:
    extra: dict[str, Any] = {"run": run.task.run_id, "type": run.task.workflow_type}
    parts = run.task.traceparent.split("-")
    if len(parts) == 4:
        extra["trace_id"] = parts[1]
    if step:
        extra["step"] = step
    return extra


def _failure(d: common.ErrorDetail) -> str:
    kind = f" [{printable(d.type)}]" if d.type else ""
    return "\n".join([printable(d.message) + kind, *map(printable, d.stack.splitlines())])
