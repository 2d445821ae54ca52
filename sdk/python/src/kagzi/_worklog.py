"""What a worker logs of its runs and steps."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ._calls import HANGS_AFTER, StepInfo
from ._convert import printable
from .v1 import common_pb2 as common
from .v1 import worker_pb2 as w
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run
    from .worker import Worker


def late_beat(self: Worker, late: float) -> None:
    names = sorted({info.name for info in list(self.steps_running) if info.since})
    self.log.warning("a heartbeat came %.1f s late: code kept the interpreter to itself; running steps: %s. The "
                     "lease ends after %.0f s without one", late, ", ".join(names) or "none", self.session.lease)


def log_failed_step(self: Worker, run: Run, name: str, number: int, d: common.ErrorDetail,
                    r: w.FailStepResponse) -> None:
    """Logs a failed attempt of a step."""
    level, text = logging.WARNING, "failed for good"
    if r.scheduled_retry:
        text = f"failed; it will be retried in {r.retry_in.seconds + r.retry_in.nanos / 1e9:.3g} s"
    elif d.code == common.ERROR_CODE_CANCELLED:
        level, text = logging.INFO, "ended because its run is being cancelled"
    self.log.log(level, "step %s %s (attempt %d): %s", name, text, number, _failure(d), extra=run_extra(run, name))


def log_failed_run(self: Worker, run: Run, d: common.ErrorDetail, r: w.FailWorkflowResponse) -> None:
    """Logs that a run, or this attempt of it, failed."""
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
    """Returns what log records say of a run."""
    extra: dict[str, Any] = {"run": run.task.run_id, "type": run.task.workflow_type}
    parts = run.task.traceparent.split("-")
    if len(parts) == 4:
        extra["trace_id"] = parts[1]
    if step:
        extra["step"] = step
    return extra


def _failure(d: common.ErrorDetail) -> str:
    kind = f" [{printable(d.type)}]" if d.type else ""
    return printable(d.message) + kind + (f"\n{d.stack}" if d.stack else "")
