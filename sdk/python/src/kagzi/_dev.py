"""Reports of clocks, random numbers and files in workflow code, in tests and with KAGZI_DEV=1. Nothing is replaced."""

from __future__ import annotations

import builtins
import datetime
import logging
import os
import random
import socket
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

from ._loop import user_line

if TYPE_CHECKING:
    from .worker import Worker

_NOW = "write kagzi.now(), or read the clock in a step"
_CHANCE = "write kagzi.random() or kagzi.uuid(), or draw it in a step"
_BLOCKS = "write await kagzi.sleep(name, seconds): it blocks all runs of the worker"
_IO = "do it in a step"
_CALLS: dict[Any, tuple[str, str]] = {
    **{getattr(time, n): (f"time.{n}()", _NOW) for n in (
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "localtime", "gmtime")},
    time.sleep: ("time.sleep()", _BLOCKS), os.urandom: ("os.urandom()", _CHANCE),
    builtins.open: ("open()", _IO), builtins.input: ("input()", _IO)}
_METHODS: dict[str, tuple[Any, str, str]] = {  # by name: of what, how it is called, and what to write instead
    **{n: (datetime.datetime, f"datetime.{n}()", _NOW) for n in ("now", "utcnow")}, "today": (
        datetime.date, "date.today()", _NOW),
    **dict.fromkeys(("random", "getrandbits"), (random, "random", _CHANCE)),
    **{n: (socket, f"socket.{n}()", _IO) for n in ("connect", "bind", "getaddrinfo")}}
_GLOBAL = getattr(random, "_inst")  # noqa: B009  the generator of random.random()
_QUIET = (os.path.dirname(__file__), os.path.dirname(logging.__file__))  # they may


class Reporter:
    """A profile function of the interpreter that reports each line once; ``found`` has the texts."""

    def __init__(self, worker: Worker) -> None:
        self._log, self._seen = worker.log, set[tuple[str, str]]()
        self.found: list[str] = []

    def __enter__(self) -> None:
        self._outer = sys.getprofile()
        sys.setprofile(self)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._outer)

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        if event != "c_call":
            return
        try:
            about = _CALLS.get(called) or _method(called)
        except TypeError:  # not hashable
            return
        if about is not None and not frame.f_code.co_filename.startswith(_QUIET):
            self._report(about, user_line(frame))

    def _report(self, about: tuple[str, str], at: str) -> None:
        what, instead = about
        if (what, at) not in self._seen:
            self._seen.add((what, at))
            text = f"{at}: workflow code calls {what}, whose result is not the same in every replay: {instead}"
            self.found.append(text)
            self._log.warning("%s", text)


def _method(called: Any) -> tuple[str, str] | None:
    of, what, instead = _METHODS.get(called.__name__, (None, "", ""))
    if of is None:
        return None
    on = called.__self__
    if of is random:
        return (f"random.{called.__name__}()", instead) if on is _GLOBAL else None
    if of is socket:
        return (what, instead) if isinstance(on, socket.socket) or getattr(on, "__name__", "") == "_socket" else None
    return (what, instead) if isinstance(on, type) and issubclass(on, of) else None
