"""What workflow code and code of steps calls."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random as _random
import uuid as _uuid
from collections.abc import AsyncIterator, Awaitable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, overload

from . import codec as codecs
from ._calls import SleepCall, step_info
from ._contract import RunInfo
from ._convert import MAX_DELAY, MAX_NAME, Duration, check_name, clean_text, seconds
from ._define import T, branch_of, cleaning
from ._loop import Branch, current, where
from ._order import PATCHED
from ._waits import Child, SignalCall
from .errors import ConfigError, ContinueAsNew, Misuse, cancelled_error


async def sleep(name: str, duration: Duration) -> None:
    """Waits. The run holds no worker meanwhile and survives restarts.

    Args:
        name: Name of the timer, as of a step.
        duration: Seconds or a timedelta, at most 10 years; 0 or less does not park the run.

    A cancellation of the run ends the sleep early; then the next call raises Cancelled.
    """
    branch = branch_of(f"sleep {name}")
    d = seconds(duration, f"duration of sleep {name}")
    if d > MAX_DELAY:
        raise branch.run.reject(ConfigError(f"duration of sleep {name} is {d:g} s, want at most 10 years"))
    await branch.run.make(SleepCall(branch.run, branch, name, d, 0.0, cleaning.get()))


async def sleep_until(name: str, time: datetime) -> None:
    """Is sleep until a time. One without a zone is local; one in the past does not park the run."""
    branch = branch_of(f"sleep {name}")
    until = time.timestamp()
    await branch.run.make(SleepCall(branch.run, branch, name, until - branch.run.now(), until, cleaning.get()))


@overload
async def wait_signal(name: str, type: type[T], limit: Duration | None = None) -> T: ...


@overload
async def wait_signal(name: str, type: Any = Any, limit: Duration | None = None) -> Any: ...


async def wait_signal(name: str, type: Any = Any, limit: Duration | None = None) -> Any:
    """Waits for the next signal of a name and returns its value. While the run waits it holds no worker.

    Signals are stored from the start of the run; each is received once, in order of arrival. A wait is a step with the
    signal's name: the second one for ``approval`` is the step ``approval:2``.

    Args:
        name: Name of the signal.
        type: Type of its value (plain JSON).
        limit: Longest wait, in seconds or as a timedelta; 0 takes only a signal that has arrived (no limit).

    Raises:
        TimedOut: The limit has passed.
        StepError: The value does not fit the type; the signal is consumed.
        Cancelled: The run is being cancelled.
    """
    branch = branch_of(f"the wait for signal {name}")
    most = None if limit is None else seconds(limit, f"limit of signal {name}")
    return await branch.run.make(SignalCall(branch.run, branch, name, type, most, cleaning.get()))


class First(NamedTuple):
    """What was first: its index among the arguments, and its task, whose ``result()`` returns or raises."""

    index: int  # type: ignore[assignment]
    task: asyncio.Task[Any]


async def first(*waits: Awaitable[Any]) -> First:
    """Waits until the first of several calls has ended: ``await kagzi.first(wait_signal("ok"), sleep("late", 60))``.

    The first is the one whose result reached the code first, the same in every replay; of several that ended with one
    result, it is the earlier argument. The others go on: pass their tasks again to wait for them. A signal that the
    code has not received when the run ends goes back to the queue.

    Args:
        *waits: Coroutines, tasks, and children; at least one.
    """
    branch = branch_of("kagzi.first")
    if not waits:
        raise ConfigError("kagzi.first: nothing to wait for")
    tasks = [_task_of(one) for one in waits]
    branch.come_to_wait()
    if not any(t.done() for t in tasks):
        ended = branch.run.loop.create_future()

        def wake(_: Any) -> None:
            if not ended.done():
                ended.set_result(None)

        for t in tasks:
            t.add_done_callback(wake)
        try:
            await ended
        finally:
            for t in tasks:
                t.remove_done_callback(wake)
    done = [(_order(t), n) for n, t in enumerate(tasks) if t.done()]
    index = min(done)[1]
    return First(index, tasks[index])


def _task_of(one: Awaitable[Any]) -> asyncio.Task[Any]:
    if isinstance(one, Child):
        return one._waiting()
    made = asyncio.ensure_future(one)
    if not isinstance(made, asyncio.Task):
        raise ConfigError(f"kagzi.first: {one!r:.100} is neither a coroutine, a task nor a child")
    return made


def _order(task: asyncio.Task[Any]) -> int:
    branch = branch_of("kagzi.first").run.orders.get(task)
    return branch.order if branch is not None else 0


async def as_completed(waits: Iterable[Awaitable[T]]) -> AsyncIterator[asyncio.Task[T]]:
    """Yields tasks in the order in which they end, the same in every replay."""
    left = [_task_of(one) for one in waits]
    while left:
        index, task = await first(*left)
        del left[index]
        yield task


# Values that are recorded


def now() -> datetime:
    """Returns the time of the server's clock, in UTC. It is recorded: replays return the same."""
    branch = branch_of("kagzi.now")
    run = branch.run
    made: str = run.record(branch, "kagzi:now", lambda: _rfc3339(run.now()), str)
    return datetime.fromisoformat(made)


def _rfc3339(t: float) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=t)).isoformat().replace("+00:00", "Z")


def random() -> _random.Random:
    """Returns the branch's generator of random numbers; its seed is recorded at the first call."""
    return _generators(branch_of("kagzi.random"))[0]


def uuid() -> _uuid.UUID:
    """Returns a random UUID (version 4) that is the same in every replay."""
    return _uuid.UUID(bytes=_generators(branch_of("kagzi.uuid"))[1].randbytes(16), version=4)


def _generators(branch: Branch) -> tuple[_random.Random, _random.Random]:
    """Returns the branch's generators of random numbers and of UUIDs."""
    if branch.generators is None:
        seed: bytes = branch.run.record(branch, "kagzi:seed", lambda: os.urandom(64), bytes)
        branch.generators = _random.Random(seed[:32]), _random.Random(seed[32:])
    return branch.generators


def patched(id: str) -> bool:
    """Returns whether the run takes the new way at a change of its code.

    It is true for a run that reaches this place for the first time with the new code, and false in a replay of one that
    has passed it without the patch. The answer is recorded. When no run of the old way is left, remove the old way and
    the call, and name the id in ``Worker(removed_patches=…)`` until no run with its answer is left.

    Args:
        id: As a name of a step.
    """
    branch = branch_of("kagzi.patched")
    run = branch.run
    check_name("patch", id)
    return bool(run.record(branch, PATCHED + id, lambda: len(run.uncalled) == run.own_left, bool))


def note(text: str) -> None:
    """Sets the progress text of the run, which lists show; it is cut to 255 bytes. It is not part of the history."""
    branch = current.get()
    if branch is not None:
        branch.run.note(clean_text(text, MAX_NAME))
        return
    info = step_info.get()
    if info is None:
        raise Misuse(f"kagzi.note is called outside of a run, at {where()}")
    info.run.worker.loop.call_soon_threadsafe(info.run.note, clean_text(text, MAX_NAME))


def info() -> RunInfo:
    """Returns what the run was started with, and which worker runs it. Code of steps may call it, too."""
    branch, step_ = current.get(), step_info.get()
    if branch is None and step_ is None:
        raise Misuse(f"kagzi.info is called outside of a run, at {where()}")
    run = branch.run if branch is not None else step_.run  # type: ignore[union-attr]
    return RunInfo._of(run.task, worker_id=run.worker.id)


# Cancellation, cleanup, continuation


@contextlib.asynccontextmanager
async def cleanup() -> AsyncIterator[None]:
    """Allows calls although the run is being cancelled, until the grace period ends.

    Example::

        except kagzi.Cancelled:
            async with kagzi.cleanup():
                await kagzi.do("refund", refund)
            raise
    """
    branch_of("kagzi.cleanup")
    token = cleaning.set(True)
    try:
        yield
    finally:
        try:
            cleaning.reset(token)
        except ValueError:
            pass  # dropped in another context


def cancelled() -> bool:
    """Returns whether the run is being cancelled, as far as the code has been told."""
    return branch_of("kagzi.cancelled").run.cancelled


def grace_until() -> datetime | None:
    """Returns when the grace period of the cancellation ends; None without one. It may change in a replay."""
    at = branch_of("kagzi.grace_until").run.grace_until
    return datetime.fromtimestamp(at, UTC) if at else None


def continue_as_new(input: Any = None) -> Any:
    """Ends the run and starts the next one, of the same type, in one commit: keeps the history of a loop short.

    It raises; the workflow function must let that pass. The next run inherits the external id, queue, policies, tags,
    parent, children and the signals that this run has not received.

    Raises:
        ContinueAsNew: Always, unless the run is being cancelled.
        Cancelled: The run is being cancelled.
    """
    branch = branch_of("kagzi.continue_as_new")
    run = branch.run
    if run.cancelled and not cleaning.get():
        raise cancelled_error("continue as new")
    signals = codecs.start_of_signals(run.start_digest(), run.task.input) if run.codec is not None else ""
    raise ContinueAsNew(codecs.encode(run.codec, input, codecs.input_info(run.task.workflow_type, run.task.external_id,
                                                                          signals)))


# Code of steps


def idempotency_key() -> str:
    """Returns a key for external systems: the run's id, a slash, the step's name. It is the same for all attempts.

    Outside of a step it is empty.
    """
    at = step_info.get()
    return f"{at.run.task.run_id}/{at.name}" if at is not None else ""


def attempt() -> int:
    """Returns the number of the step's attempt, from 1; outside of a step 0."""
    at = step_info.get()
    return at.attempt if at is not None else 0


def step_cancelled() -> bool:
    """Returns whether nobody waits for the step any more: it timed out, or its run is being cancelled or was lost.

    A sync step should look at it now and then and raise; an async one gets asyncio.CancelledError.
    """
    at = step_info.get()
    return at is not None and at.cancelled


# Log


class RunLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that is silent in replay: lines of workflow code are written once."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        """Adds what identifies the run: run, type, attempt, trace_id, step."""
        from ._code import run_extra

        branch, at = current.get(), step_info.get()
        extra: dict[str, Any] = {}
        if branch is not None:
            extra = {**run_extra(branch.run), "attempt": branch.run.task.attempt}
        elif at is not None:
            extra = {**run_extra(at.run, at.name), "attempt": at.attempt}
        return msg, {**kwargs, "extra": {**(kwargs.get("extra") or {}), **extra}}

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Writes a line, or holds it back while the code may be replaying."""
        branch = current.get()
        if not self.isEnabledFor(level):
            return
        msg, kwargs = self.process(msg, kwargs)
        if branch is None:
            self.logger.log(level, msg, *args, stacklevel=2, **kwargs)
            return
        record = self.logger.makeRecord(self.logger.name, level, *_caller(), msg, args, None, extra=kwargs["extra"])
        branch.log_line(self.logger, record)


def _caller() -> tuple[str, int]:
    file, _, line = where().rpartition(":")
    return (file, int(line)) if line.isdigit() else ("?", 0)


def logger(name: str = "kagzi.run") -> RunLogger:
    """Returns the logger for workflow code and code of steps."""
    return RunLogger(logging.getLogger(name), {})
