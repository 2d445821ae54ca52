"""The recorded history of a run, and what is recorded beside the calls of its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _order, codec
from ._calls import FUNCTION, SIGNAL, Call
from ._convert import check_name
from ._naming import OWN, Branch, claim
from ._outbox import Op
from .errors import DecodeError, KagziError, error_detail
from .v1 import common_pb2 as common
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run

_PATCHED = "kagzi:patched:"
_VERDICT = "kagzi:ended"


def read_record(run: Run, name: str, p: common.Payload, annotation: Any) -> Any:
    """Returns a recorded result; one that cannot be read fails the run."""
    try:
        return codec.decode(run.codec, p, run.payload_info("step", name), annotation)
    except KagziError as e:
        error = DecodeError(f"recorded result of step {name}: {e}", getattr(e, "path", ""), "unreadable")
        run.unreadable = run.unreadable or name
        run.fail(error_detail(error))
        raise error from e


def judge(run: Run, call: Call, d: common.ErrorDetail) -> None:
    """Records the outcome of a call that its own record does not show."""
    run.verdicts[call.name] = d
    run.verdict_count += 1
    name = _VERDICT if run.verdict_count == 1 else f"{_VERDICT}:{run.verdict_count}"
    run.send("fail_step", step_name=name, branch=call.branch.path, error=d, started=run.now(), hold=True)


def complete_own(run: Run, name: str, branch: str, p: common.Payload) -> Op:
    return run.send("complete_step", step_name=name, branch=branch, output=p, started=run.now())


def record(run: Run, branch: Branch, name: str, value: Callable[[], Any], annotation: Any = Any) -> Any:
    """Returns a value that is computed in place and recorded, also during a cancellation."""
    if run.quitted or run.closing or run.loop.dead:
        return value()
    if branch.path:
        name += "/" + branch.path
    name, recorded = claim(run, branch, name, FUNCTION, "")
    run.names[name].in_flight = False
    if recorded is not None and recorded.status == f.STEP_STATUS_COMPLETED:
        run.release()
        return run.read_record(name, recorded.output, annotation)
    if recorded is None:
        run.write_lines(branch)
    made = value()
    run.complete_own(name, branch.path, codec.encode(run.codec, made, run.payload_info("step", name)))
    run.release()
    return made


def patched(run: Run, branch: Branch, patch: str) -> bool:
    """Returns whether the run takes the new way at a change of its code."""
    check_name("patch", patch)
    return bool(run.record(branch, _PATCHED + patch, lambda: len(run.uncalled) == run.own_left, bool))


def remember(run: Run, s: f.Step) -> None:
    run.recorded = max(run.recorded, s.settled)
    name = s.name
    if name == _VERDICT or name.startswith(_VERDICT + ":"):
        run.verdict_count += 1
        if s.status == f.STEP_STATUS_FAILED and "step" in s.error.metadata:
            run.verdicts[s.error.metadata["step"]] = s.error
        return
    if name == _order.CANCEL_NAME:
        _order.read_cancel(run, s)
        return
    if s.settled < 0:  # no worker has been told its result yet
        s = _untold(s)
    run.history[name] = s
    if name.startswith(OWN):
        if not _is_true_patch(run, s):
            return
        run.own_left += 1
    elif (s.kind == SIGNAL and s.settled > 0 and not s.overridden_by and s.status == f.STEP_STATUS_COMPLETED
          and not s.signal_timed_out):
        run.unreceived.add(name)
    owed = _owes(run, s)
    run.uncalled[name] = owed
    run.owing += owed


def _owes(run: Run, s: f.Step) -> bool:
    """Whether the code has to make a recorded call."""
    return run.worker.session.keeps_order and s.begun_in >= run.task.owed_from


def _is_true_patch(run: Run, s: f.Step) -> bool:
    rest = s.name.removeprefix(_PATCHED)
    if rest == s.name:
        return False
    for removed in run.worker.removed_patches:
        after = rest.removeprefix(removed)
        if after != rest and (not after or after[0] in "/:"):
            return False
    try:
        return bool(codec.decode(run.codec, s.output, run.payload_info("step", s.name)))
    except KagziError:
        return False


def _untold(s: f.Step) -> f.Step:
    """Returns a step as the code knows it, if no worker has been told its result yet."""
    told = f.Step()
    told.CopyFrom(s)
    told.status, told.settled = f.STEP_STATUS_RUNNING, 0
    told.ClearField("output")
    told.ClearField("error")
    return told
