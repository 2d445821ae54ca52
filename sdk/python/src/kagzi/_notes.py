"""The progress text of a run; log lines that workflow code writes once although it is replayed; and the worker's."""

from __future__ import annotations

import functools
import logging
import time
from typing import TYPE_CHECKING, Any

from ._calls import HANGS_AFTER, StepInfo
from ._convert import printable
from ._outbox import Op
from .v1 import common_pb2 as common
from .v1 import worker_pb2 as w
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._naming import Branch
    from ._run import Run
    from .worker import Worker


_NOTE_INTERVAL = 0.25


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


def note_lost(run: Run, text: str) -> None:
    """Sends a note again whose stream broke, unless there is a newer one."""
    if run._note is None:
        run.note(text)


def write_lines(run: Run, branch: Branch) -> None:
    """Writes the log lines that a branch held back, because it is past its recorded calls."""
    branch.replayed = False
    if branch.lines:
        lines, branch.lines = branch.lines, []
        if not run.quitted and not run.replaying:
            for logger, record in lines:
                logger.handle(record)


def come_to_wait(run: Run, branch: Branch) -> None:
    """Takes note that a branch comes to a wait without a record of its own."""
    if branch.own_result:
        branch.lines.clear()


def log_line(run: Run, branch: Branch, logger: logging.Logger, record: logging.LogRecord) -> None:
    """Writes a log line of workflow code, or holds it back while the branch may be replaying."""
    if run.quitted or run.replaying:
        return
    if branch.replayed:
        branch.lines.append((logger, record))
    else:
        logger.handle(record)


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
