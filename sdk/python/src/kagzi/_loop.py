"""The event loop of a run, and its branches.

The loop has no clock, threads or sockets. It runs when its run gets a result, until nothing is ready.

A run that waits costs its frames only. Frames are dropped by close, on the run's own loop and in its context, and
never by the garbage collector: see the rule in README.md, "What dropping a parked run runs".
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
import random
import sys
from asyncio import events, tasks
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from types import FrameType
from typing import TYPE_CHECKING, Any

from .errors import Misuse

if TYPE_CHECKING:
    from ._run import Run

log = logging.getLogger("kagzi")

CLOSES = 50
"""How often a frame that awaits again while it is closed is closed once more, before it is kept for good."""

kept: list[str] = []
"""Lines of the frames that could not be dropped. They are never resumed."""

_TASKS_FILE = tasks.__file__
_WAIT_CODES = {getattr(tasks, name).__code__ for name in ("_wait", "wait") if hasattr(tasks, name)}
_INSTEAD = {
    "as_completed": "asyncio.as_completed goes through a set, whose order is not the same in every replay: write "
                    "`async for task in kagzi.as_completed(...)`",
    "wait": "asyncio.wait returns sets, whose order is not the same in every replay: write kagzi.first(...) or "
            "asyncio.gather(...)",
    "clock": "asyncio.sleep, asyncio.timeout and asyncio.wait_for need a clock, which is not the same in every replay: "
             "write kagzi.sleep(name, seconds), or kagzi.first(call, kagzi.sleep(name, seconds)) for a limit",
    "thread": "threads and executors are not allowed in workflow code, because their results are not recorded: do the "
              "work in a step",
    "io": "sockets, files, processes and signals are not allowed in workflow code, because what they say is not "
          "recorded: do the work in a step",
}

current: contextvars.ContextVar[Branch | None] = contextvars.ContextVar("kagzi_branch", default=None)

_SDK = os.path.dirname(__file__)
_STDLIB = os.path.dirname(os.__file__)
_PACKAGES = os.path.join(_STDLIB, "site-packages")


def where() -> str:
    """Returns the line of the user's code that called, for messages."""
    return user_line(sys._getframe(1))


def user_line(frame: FrameType | None) -> str:
    """Returns the innermost line of a stack that is neither of the SDK nor of Python's own library."""
    while frame is not None:
        name = frame.f_code.co_filename
        own = name.startswith((_SDK, "<frozen")) or (name.startswith(_STDLIB) and not name.startswith(_PACKAGES))
        if not own:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


_Base: Any = asyncio.AbstractEventLoop  # whose signatures differ between versions of Python


class RunLoop(_Base):  # type: ignore[misc]
    """The event loop of one activation of a run.

    It calls forked for each new task, for the context in which it runs, and misused when code did what only steps may.
    """

    def __init__(self, forked: Callable[[RunLoop, contextvars.Context | None], tuple[contextvars.Context, Any]],
                 misused: Callable[[Misuse], None]) -> None:
        self._ready: deque[asyncio.Handle] = deque()
        self._forked, self._misused = forked, misused
        self._generators: list[tuple[AsyncGenerator[Any, Any], contextvars.Context]] = []
        self._prune = 64
        self.tasks: dict[asyncio.Task[Any], Branch] = {}
        self.dead = False
        self.exit: BaseException | None = None
        self.running = False

    # What asyncio asks of a loop.

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def time(self) -> float:
        return 0.0

    def call_soon(self, callback: Callable[..., object], *args: Any,
                  context: contextvars.Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self.dead:
            self._ready.append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any,
                             context: contextvars.Context | None = None) -> asyncio.Handle:
        if not self.running:
            raise self.misuse("thread")
        return self.call_soon(callback, *args, context=context)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any,
                   context: contextvars.Context | None = None) -> asyncio.TimerHandle:
        raise self.misuse("clock")

    call_at = call_later

    def create_future(self) -> asyncio.Future[Any]:
        frame: Any = sys._getframe(1)
        if frame.f_code in _WAIT_CODES:
            raise self.misuse("wait")
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None,
                    **_: Any) -> asyncio.Task[Any]:
        frame: Any = sys._getframe(1)
        for _step in range(5):
            if frame is None or frame.f_code.co_filename != _TASKS_FILE:
                break
            if frame.f_code.co_name == "as_completed" or ("self" in frame.f_locals and type(
                    frame.f_locals["self"]).__name__ == "_AsCompletedIterator"):
                coro.close()
                raise self.misuse("as_completed")
            if frame.f_code in _WAIT_CODES:
                coro.close()
                raise self.misuse("wait")
            if frame.f_code.co_name == "wait_for":
                coro.close()
                raise self.misuse("clock")
            frame = frame.f_back
        inside, branch = self._forked(self, context)
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name or f"kagzi branch {branch.path}",
                                               context=inside)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        branch.task = task
        self.tasks[task] = branch
        if not self.dead:
            task.add_done_callback(branch.ended)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.dead:
            log.debug("workflow code: %s", context.get("message"), exc_info=context.get("exception"))

    default_exception_handler = call_exception_handler

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        raise self.misuse("thread")

    def _no_io(self, *args: Any, **kwargs: Any) -> Any:
        raise self.misuse("io")

    add_reader = remove_reader = add_writer = remove_writer = add_signal_handler = _no_io
    getaddrinfo = getnameinfo = create_connection = create_server = _no_io
    create_datagram_endpoint = subprocess_exec = subprocess_shell = _no_io
    sock_recv = sock_sendall = sock_connect = sock_accept = connect_read_pipe = connect_write_pipe = _no_io

    def misuse(self, what: str) -> Misuse:
        """Fails the run: returns the exception that says where and what to write instead."""
        error = Misuse(f"{where()}: {_INSTEAD[what]}")
        self._misused(error)
        return error

    # What the run asks.

    def run_ready(self) -> None:
        """Runs until nothing is ready."""
        ready = self._ready
        if not ready:
            return
        with _Entered(self):
            while ready:
                handle = ready.popleft()
                if handle._cancelled:
                    continue
                try:
                    handle._run()
                except (SystemExit, asyncio.CancelledError) as e:
                    self.exit = e
                    return
                del handle  # an exception keeps this frame, and with it the task

    def hold_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Keeps an asynchronous generator from being finished by the collector."""
        self._generators.append((generator, contextvars.copy_context()))
        if len(self._generators) > self._prune:
            self._generators = [g for g in self._generators if getattr(g[0], "ag_frame", None) is not None]
            self._prune = max(64, 2 * len(self._generators))

    def close(self) -> None:
        """Drops all frames: what the code has in finally, and in handlers of BaseException, runs up to its first await.

        Calls of the SDK record nothing meanwhile. Tasks are closed in the reverse order of their creation.
        """
        self.dead = True
        self._ready.clear()
        while self.tasks:  # closing code may make more
            task, branch = self.tasks.popitem()
            coro = task.get_coro()
            if not task.done() and coro is not None:
                context = branch.context if branch.context is not None else contextvars.copy_context()
                context.run(self._close_one, coro)
        for generator, inside in self._generators:
            inside.run(self._close_generator, generator)
        self._generators.clear()
        self._ready.clear()

    def let_go(self) -> None:
        """Forgets the run, after close."""
        self._forked = self._misused = _ignore

    def _close_one(self, coro: Any) -> None:
        """Throws Dropped where the code awaits. close() would do from the outside in, and orphan what awaits again."""
        if getattr(coro, "cr_frame", None) is None or inspect.getcoroutinestate(coro) == inspect.CORO_CREATED:
            coro.close()
            return
        self._throw(coro, coro.throw)

    def _throw(self, what: Any, throw: Callable[[BaseException], Any]) -> None:
        with _Entered(self):
            for _ in range(CLOSES):
                try:
                    throw(Dropped())
                except (StopIteration, StopAsyncIteration, Dropped):
                    return
                except BaseException as e:
                    log.debug("an exception while a run was dropped", exc_info=e)
                    return
        line = _line(what)
        kept.append(line)
        _immortal(what)
        log.warning("workflow code cannot be dropped, because it catches everything and awaits again; its frame is "
                    "kept for good: %s", line)

    def _close_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        if getattr(generator, "ag_frame", None) is None or getattr(generator, "ag_running", False):
            return

        def throw(e: BaseException) -> None:
            closing: Any = generator.athrow(e)
            closing.send(None)  # it awaits: that await is thrown at next
            while True:
                closing.throw(Dropped())

        self._throw(generator, throw)


class Dropped(BaseException):
    """Ends the frames of a run that is dropped. Nothing that the code does then is recorded."""


def _immortal(what: Any) -> None:
    """Keeps an object from ever being collected, also at the end of the process."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))


def _line(what: Any) -> str:
    line = repr(what)
    while what is not None:
        frame = getattr(what, "cr_frame", None) or getattr(what, "ag_frame", None)
        if frame is not None and not frame.f_code.co_filename.startswith(os.path.dirname(__file__)):
            line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        what = getattr(what, "cr_await", None)
    return line


class _Entered:
    """Makes a loop the running one of this thread."""

    __slots__ = ("_generators", "_loop", "_outer", "_was")

    def __init__(self, loop: RunLoop) -> None:
        self._loop = loop

    def __enter__(self) -> None:
        self._outer, self._generators = events._get_running_loop(), sys.get_asyncgen_hooks()
        self._was = self._loop.running
        self._loop.running = True
        events._set_running_loop(self._loop)
        sys.set_asyncgen_hooks(firstiter=self._loop.hold_generator, finalizer=_ignore)

    def __exit__(self, *_: object) -> None:
        sys.set_asyncgen_hooks(*self._generators)
        events._set_running_loop(self._outer)
        self._loop.running = self._was


def _ignore(*_: Any) -> Any:
    pass


class Parked:
    """What a coroutine of a dropped run awaits: it is never resumed, and never raises."""

    _asyncio_future_blocking = False

    def __init__(self, loop: RunLoop) -> None:
        self._loop = loop

    def __await__(self) -> Generator[Any, None, Any]:
        while True:
            self._asyncio_future_blocking = True
            yield self

    __iter__ = __await__

    def add_done_callback(self, *_: Any, **__: Any) -> None:
        pass

    def get_loop(self) -> RunLoop:
        return self._loop

    def cancel(self, *_: Any, **__: Any) -> bool:
        return False


class Branch:
    """One line of execution. It is joined when its parent runs again with no child unfinished."""

    __slots__ = ("children", "clock", "context", "forks", "generators", "joined_at", "joined_by", "lines", "order",
                 "ordinals", "own_result", "parent", "path", "replayed", "run", "started_at", "task")

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
        self.generators: tuple[random.Random, random.Random] | None = None
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
        if self.children and all(c.task is not None and c.task.done() for c in self.children):
            self.clock += 1
            for c in self.children:
                c.joined_by, c.joined_at = self, self.clock
                if not c.replayed:
                    self.write_lines()
                    self.replayed = False
                self.own_result = self.own_result and c.own_result
            self.children.clear()

    def come_to_wait(self) -> None:
        """Takes note of a wait without a record of its own."""
        if self.own_result:
            self.lines.clear()

    def log_line(self, logger: logging.Logger, record: logging.LogRecord) -> None:
        """Writes a log line of the code, or holds it back while the code may be replaying: it is written once."""
        if self.run.quitted or self.run.replaying:
            return
        if self.replayed:
            self.lines.append((logger, record))
        else:
            logger.handle(record)

    def write_lines(self) -> None:
        """Writes the lines that were held back, because the code is past its recorded calls."""
        self.replayed = False
        if self.lines:
            lines, self.lines = self.lines, []
            if not self.run.quitted and not self.run.replaying:
                for logger, record in lines:
                    logger.handle(record)

    def ended(self, task: asyncio.Task[Any]) -> None:
        self.order = self.run.current
        self.join()
        self.run.orders[task] = self
        self.run.loop.tasks.pop(task, None)
        self.write_lines()


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
