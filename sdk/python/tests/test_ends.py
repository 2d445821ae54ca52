"""Nothing of a run goes behind an operation that may end its lease before that is answered (PROTOCOL.md §10.1)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from typing import Any

import pytest

import kagzi
from kagzi import _calls
from kagzi._outbox import Op, may_end_lease
from kagzi._run import Run
from kagzi._session import Session
from kagzi.v1 import worker_pb2 as w


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What went behind an operation that may end the lease and was not answered."""
    found: list[str] = []
    post = Session.post

    def posted(session: Session, op: Op) -> None:
        for other in op.run.ops.values() if op.run is not None else ():
            if other is not op and may_end_lease(other.msg, other.kind):
                found.append(f"{op.kind} went behind {other.kind}")
        post(session, op)

    monkeypatch.setattr(Session, "post", posted)
    return found


@kagzi.workflow
async def two_signals() -> list[str]:
    return list(await asyncio.gather(kagzi.wait_signal("a", str), kagzi.wait_signal("b", str)))


def test_a_hint_about_a_wait_that_is_asked_about_asks_nothing_that_ends_the_lease(kagzi_env, monkeypatch, wrong):
    kagzi_env.worker(two_signals)
    run = kagzi_env.client.start(two_signals)
    kagzi_env.waits(run)
    kagzi_env.stop_workers()
    asks, let_go, post = threading.Event(), threading.Event(), Session.post

    def posted(session: Session, op: Op) -> None:
        if op.kind == "await_signal" and not let_go.is_set():
            asks.set()
            assert let_go.wait(20)
        post(session, op)

    monkeypatch.setattr(Session, "post", posted)
    run.signal("a", "1")
    worker = kagzi_env.worker(two_signals)
    assert asks.wait(10)  # a has reached the code; before the run parks it asks about b
    run.signal("b", "2")
    kagzi_env.until(lambda: any(kind == "wait_over" for kind, _ in list(worker.session._events)))
    let_go.set()
    assert run.result(20) == ["1", "2"]
    assert wrong == []


late = threading.Event()


@kagzi.step(retry=kagzi.Retry(attempts=1), timeout=0.05)
def goes_on() -> None:
    assert late.wait(20)
    with contextlib.suppress(kagzi.Misuse):
        kagzi.now()


@kagzi.workflow
async def waits_after_a_timeout() -> None:
    with contextlib.suppress(kagzi.TimedOut):
        await goes_on()
    await kagzi.wait_signal("a")


def test_a_failure_waits_for_the_answer_to_what_may_end_the_lease(kagzi_env, monkeypatch, wrong):
    late.clear()
    kept: list[tuple[Run, Op, Any]] = []
    came, take = threading.Event(), Run.answered

    def answered(run: Run, op: Op, r: Any) -> None:
        if op.kind == "await_signal":
            kept.append((run, op, r))
            came.set()
        else:
            take(run, op, r)

    monkeypatch.setattr(Run, "answered", answered)
    worker = kagzi_env.worker(waits_after_a_timeout)
    run = kagzi_env.client.start(waits_after_a_timeout)
    assert came.wait(10)
    late.set()  # code of a step that has timed out does what only workflow code may do
    kagzi_env.until(lambda: not worker.steps_running)
    worker.loop.call_soon_threadsafe(take, *kept[0])
    kagzi_env.waits(run)
    kagzi_env.until(lambda: not worker.runs)
    assert wrong == []


@kagzi.workflow
async def waits_once() -> None:
    await kagzi.wait_signal("a")


def test_a_heartbeat_that_overtakes_the_answer_to_a_park_drops_nothing(kagzi_env, monkeypatch):
    kept: list[tuple[Run, Op, Any]] = []
    came, take = threading.Event(), Run.answered

    def answered(run: Run, op: Op, r: Any) -> None:
        kept.append((run, op, r))
        came.set()

    monkeypatch.setattr(Run, "answered", answered)
    worker = kagzi_env.worker(waits_once)
    run = kagzi_env.client.start(waits_once)
    assert came.wait(10)
    lease = w.Lease(run_id=run.id, lease_token=kept[0][0].task.lease_token)
    worker.loop.call_soon_threadsafe(worker._on_lost, lease)
    worker.loop.call_soon_threadsafe(take, *kept[0])
    kagzi_env.until(lambda: run.id in worker.cache.runs)  # shortly after it has left worker.runs
    assert not worker.runs


@kagzi.workflow
async def holds() -> int:
    return await kagzi.do("hold", int)


def test_a_step_of_a_run_that_is_no_longer_held_is_not_announced(kagzi_env, monkeypatch):
    """Nobody would answer: the operation would be kept, and sent again on each new session."""
    monkeypatch.setattr(_calls, "ANNOUNCE_AFTER", 500.0)
    gate = threading.Event()
    kagzi_env.replace("hold", lambda: int(gate.wait(20)))
    worker = kagzi_env.worker(holds)
    run = kagzi_env.client.start(holds)
    info = kagzi_env.until(lambda: next((i for i in list(worker.steps_running) if i.since), None))
    run.terminate()
    kagzi_env.until(lambda: not worker.runs)
    told = asyncio.run_coroutine_threadsafe(info.announced(), worker.loop)  # as a client does that starts a run
    with pytest.raises(concurrent.futures.CancelledError):
        told.result(10)
    gate.set()
    kagzi_env.until(lambda: not worker.steps_running)
    assert worker.session._outboxes == {}
