"""Branches, the lines of execution of a run; names of calls, and the record that a name has in the history."""

from __future__ import annotations

import asyncio
import contextvars
import random
from typing import TYPE_CHECKING, Any

from . import _ending
from ._calls import CHILD, FUNCTION
from ._convert import check_name
from ._ending import kind_name
from ._loop import where
from .errors import Coded, KagziError
from .v1 import common_pb2 as common
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run


class Branch:
    """One line of execution. It is joined when its parent runs again with no child unfinished."""

    __slots__ = ("children", "clock", "context", "forks", "joined_at", "joined_by", "lines", "order", "ordinals",
                 "own_result", "parent", "path", "random", "replayed", "run", "started_at", "task", "uuids")

    def __init__(self, run: Run, parent: Branch | None) -> None:
        self.run, self.parent = run, parent
        self.clock = self.forks = self.started_at = self.joined_at = 0
        self.joined_by: Branch | None = None
        self.children: list[Branch] = []  # that have not been joined
        self.task: asyncio.Task[Any] | None = None
        self.context: contextvars.Context | None = None
        self.order = 0  # key of the result during whose handing over it ended
        self.ordinals: tuple[int, ...] = ()
        self.path = ""
        self.random: random.Random | None = None
        self.uuids: random.Random | None = None
        self.replayed = self.own_result = False
        self.lines: list[Any] = []
        if parent is not None:
            parent.tick()
            parent.forks += 1
            self.started_at = parent.clock
            self.ordinals = (*parent.ordinals, parent.forks)
            self.path = ".".join(map(str, self.ordinals))
            self.replayed, self.own_result = parent.replayed, parent.own_result
            parent.children.append(self)

    def tick(self) -> None:
        """Counts a named call or a fork, and joins the children if all of them have ended."""
        self.join()
        self.clock += 1

    def join(self) -> None:
        """Takes note that the code has gone on after the ends of its children."""
        if self.children and all(c.done for c in self.children):
            self.clock += 1
            for c in self.children:
                c.joined_by, c.joined_at = self, self.clock
                if not c.replayed:
                    self.run.write_lines(self)
                    self.replayed = False
                self.own_result = self.own_result and c.own_result
            self.children.clear()

    @property
    def done(self) -> bool:
        return self.task is not None and self.task.done()

    def ended(self, task: asyncio.Task[Any]) -> None:
        self.order = self.run.current
        self.join()
        self.run.orders[task] = self
        self.run.loop.tasks.pop(task, None)
        self.run.write_lines(self)


class NameUse:
    """The last use of a name within a run."""

    __slots__ = ("at", "branch", "count", "in_flight")

    def __init__(self, branch: Branch) -> None:
        self.branch, self.at = branch, branch.clock
        self.in_flight, self.count = True, 1

    def precedes(self, other: Branch) -> bool:
        """Whether the use comes before what a branch does now, in every replay."""
        by, at = self.branch, self.at
        while True:
            line: Branch | None = other
            if by is other:
                return True
            while line is not None and line.parent is not None:
                if line.parent is by:
                    return at <= line.started_at
                line = line.parent
            if by.joined_by is None:
                return False
            by, at = by.joined_by, by.joined_at


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
            if not run.worker.session.keeps_order:
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
