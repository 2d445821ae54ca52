"""Branches are the lines of execution of a run: the workflow function, and each task that it makes."""

from __future__ import annotations

import asyncio
import contextvars
import random
from typing import TYPE_CHECKING, Any

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
        """Whether its code has ended."""
        return self.task is not None and self.task.done()

    def ended(self, task: asyncio.Task[Any]) -> None:
        """Takes the end of its code."""
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
