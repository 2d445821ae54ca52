"""Names of calls, and the record that a name has in the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _ending
from ._branch import Branch, NameUse
from ._calls import CHILD, FUNCTION
from ._convert import check_name
from ._ending import kind_name
from ._loop import where
from .errors import Coded, KagziError
from .v1 import common_pb2 as common
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run

OWN = "kagzi:"


def claim(run: Run, branch: Branch, written: str, kind: int, detail: str) -> tuple[str, f.Step | None]:
    """Takes a name for a call: returns the name under which it is recorded, and its record."""
    branch.tick()
    try:
        if written not in run.names:
            check_name("step", written)
        while True:
            name = _next_name(run, branch, written)
            record = run.history.get(name)
            if record is None or _matches(record, kind, detail):
                _made(run, name)
                if record is not None or name in run.verdicts:
                    final = name in run.verdicts or (record is not None and recorded_as(record, kind))
                    branch.lines.clear()
                    branch.replayed = final
                    branch.own_result = kind in (FUNCTION, CHILD)
                return name, record
            misfit = Coded(
                f"step {name} is recorded as {kind_name(record.kind)}, but the code now makes a {kind_name(kind)}: "
                "this is not the code that the run started with", "nondeterministic")
            if not run.worker.keeps_order:
                raise misfit
            if run.uncalled.get(name):
                run.misfit = f.Call(name=name, kind=kind, branch=branch.path, detail=detail)  # type: ignore[arg-type]
                _ending.diverge(run)
                raise misfit
            _made(run, name)
            run.names[name].in_flight = False
    except KagziError as e:
        raise run.reject(e) from None


def _next_name(run: Run, branch: Branch, written: str) -> str:
    use, name = run.names.get(written), written
    if use is not None:
        if use.in_flight or not use.precedes(branch):
            raise _clash(written)
        use.branch, use.at = branch, branch.clock
        while True:
            use.count += 1
            name = f"{written}:{use.count}"
            other = run.names.get(name)
            if other is None:
                check_name("numbered step", name)
                break
            if other.in_flight or not other.precedes(branch):
                raise _clash(name)
    run.names[name] = NameUse(branch)
    return name


def _made(run: Run, name: str) -> None:
    owed = run.uncalled.pop(name, None)
    if owed is None:
        return
    if name.startswith(OWN):
        run.own_left -= 1
    if owed:
        run.owing -= 1


def _clash(name: str) -> Coded:
    return Coded(f"step name {name} is used by two branches at once, at {where()}; give each its own name, such as "
                 f"{name}-1 and {name}-2", "step_name_clash")


def _matches(s: f.Step, kind: int, detail: str) -> bool:
    if s.kind == f.STEP_KIND_UNSPECIFIED or s.kind not in f.StepKind.values():  # of a newer server
        return True
    return s.kind == kind and (not s.signal_name or s.signal_name == detail)


def recorded_as(s: f.Step, kind: int) -> bool:
    """Whether a call of that kind returns from the record. The start of a child does so while the child runs."""
    if s.status == f.STEP_STATUS_COMPLETED:
        return True
    if s.status == f.STEP_STATUS_FAILED:
        return s.error.code != common.ERROR_CODE_CRASHED or bool(s.child_run_id)
    return s.status == f.STEP_STATUS_RUNNING and kind == CHILD
