"""Parked runs in memory: they go on without a replay, are evicted, and never wrong."""

from __future__ import annotations

import asyncio

import pytest

import kagzi
from kagzi import _parking
from kagzi._session import Session
from kagzi.v1 import worker_pb2 as w

begun: list[str] = []


@kagzi.workflow
async def three(text: str) -> list[str]:
    begun.append(kagzi.info().run_id)
    return [await kagzi.wait_signal("a", str) for _ in range(3)]


def sends(env, run, worker=None):
    for n in range(3):
        env.waits(run)
        if worker is not None:
            env.until(lambda: run.id in worker.cache.runs)
        run.signal("a", str(n))
        env.until(lambda n=n: len([s for s in run.steps() if s.status == 3 or s.finished_at.seconds]) > n)
    return run.result(20)


@pytest.mark.parametrize(("cache", "times"), [(10, 1), (0, 4)])
def test_a_kept_run_goes_on_without_a_replay(kagzi_env, cache, times):
    begun.clear()
    worker = kagzi_env.worker(three, cache=cache)
    run = kagzi_env.client.start(three, "x")
    assert sends(kagzi_env, run, worker if cache else None) == ["0", "1", "2"]
    assert begun.count(run.id) == times


@pytest.mark.parametrize("options", [{"cache": 1}, {"cache_bytes": 30 << 10}], ids=["runs", "bytes"])
def test_of_too_many_the_first_is_dropped(kagzi_env, options):
    begun.clear()
    worker = kagzi_env.worker(three, **options)
    first = kagzi_env.client.start(three, "x")
    kagzi_env.until(lambda: list(worker.cache.runs) == [first.id])
    second = kagzi_env.client.start(three, "x" * 100)
    kagzi_env.until(lambda: list(worker.cache.runs) == [second.id])
    for run in (first, second):
        for n in range(3):
            run.signal("a", str(n))
        assert run.result(20) == ["0", "1", "2"]
    assert begun.count(second.id) <= begun.count(first.id)
    assert begun.count(first.id) >= 2
    kagzi_env.until(lambda: worker.cache.size == 0)


def test_after_its_time_a_run_is_dropped(kagzi_env, monkeypatch):
    monkeypatch.setattr(_parking, "KEEP_FOR", 0.3)
    begun.clear()
    worker = kagzi_env.worker(three)
    run = kagzi_env.client.start(three, "x")
    kagzi_env.until(lambda: run.id in worker.cache.runs)
    kagzi_env.until(lambda: not worker.cache.runs)
    for n in range(3):
        run.signal("a", str(n))
    assert run.result(20) == ["0", "1", "2"]
    assert begun.count(run.id) >= 2


def test_what_was_parked_under_another_lease_is_replayed(kagzi_env):
    begun.clear()
    worker = kagzi_env.worker(three)
    run = kagzi_env.client.start(three, "x")
    kagzi_env.until(lambda: run.id in worker.cache.runs)
    worker.cache.runs[run.id].task.lease_token = "another"
    run.signal("a", "0")
    kagzi_env.until(lambda: begun.count(run.id) == 2)
    run.signal("a", "1")
    run.signal("a", "2")
    assert run.result(20) == ["0", "1", "2"]


def test_a_task_that_overtakes_the_answer_is_not_lost(kagzi_env, monkeypatch):
    """The answer to the operation that parks the run is kept back until the server has sent the run again."""
    begun.clear()
    kept: list[object] = []
    real = Session._event

    def event(self, kind, what):
        if kind == "answer" and what[0].parks and not kept:
            kept.append((self, what))
            return
        real(self, kind, what)
        if kind == "task" and len(kept) == 1 and what.run_id == kept[0][1][0].run.task.run_id:
            kept.append("delivered")
            real(kept[0][0], "answer", kept[0][1])

    monkeypatch.setattr(Session, "_event", event)
    kagzi_env.worker(three)
    run = kagzi_env.client.start(three, "x")
    kagzi_env.until(lambda: kept)
    kagzi_env.waits(run)
    for n in range(3):
        run.signal("a", str(n))
    assert run.result(20) == ["0", "1", "2"]
    assert kept[1:] == ["delivered"]
    assert begun.count(run.id) == 1


@kagzi.workflow
async def two_waits() -> str:
    begun.append(kagzi.info().run_id)
    return "".join(await asyncio.gather(kagzi.wait_signal("a", str), kagzi.wait_signal("b", str)))


def test_nothing_goes_behind_the_release_of_a_run_that_is_kept(kagzi_env, monkeypatch):
    """A hint that comes before the answer to the release must not make a wait ask."""
    begun.clear()
    sent: list[str] = []
    real_post, real_event = Session.post, Session._event

    def post(self, op):
        if op.run is not None:
            sent.append(op.kind)
        real_post(self, op)

    def event(self, kind, what):
        if kind == "answer" and what[0].kind == "release_task":
            run = what[0].run
            real_event(self, "wait_over", w.WaitOver(run_id=run.task.run_id, lease_token=run.task.lease_token,
                                                     step_name="a"))
        real_event(self, kind, what)

    monkeypatch.setattr(Session, "post", post)
    monkeypatch.setattr(Session, "_event", event)
    worker = kagzi_env.worker(two_waits)
    run = kagzi_env.client.start(two_waits)
    kagzi_env.until(lambda: run.id in worker.cache.runs)
    assert sent[-1] == "release_task"
    run.signal("a", "x")
    run.signal("b", "y")
    assert run.result(20) == "xy"
    assert begun == [run.id]


@kagzi.workflow
async def child(n: int) -> int:
    await kagzi.wait_signal("go")
    return n * 2


tries: list[int] = []


def flaky() -> str:
    tries.append(1)
    if len(tries) < 2:
        raise ValueError("not yet")
    return "done"


@kagzi.workflow
async def mixed() -> list[object]:
    begun.append(kagzi.info().run_id)
    got: list[object] = [await kagzi.do("flaky", flaky, retry=kagzi.Retry(initial=0.1, jitter=-1))]
    await kagzi.sleep("nap", 0.1)
    one = await kagzi.start_child("one", child, 1)
    two = await kagzi.start_child("two", child, 2)
    return got + await asyncio.gather(one.result(), two.result(), kagzi.wait_signal("s", str))


def test_sleeps_retries_children_and_branches_go_on_in_memory(kagzi_env):
    begun.clear()
    tries.clear()
    worker = kagzi_env.worker(mixed, child)
    run = kagzi_env.client.start(mixed)
    children = kagzi_env.until(lambda: (found := list(kagzi_env.client.list(parent_run_id=run.id)))[1:] and found)
    kagzi_env.until(lambda: {run.id, *(c.run_id for c in children)} <= set(worker.cache.runs))
    for c in children:
        kagzi_env.client.run(c.run_id).signal("go")
    kagzi_env.until(lambda: all(kagzi_env.client.get(c.run_id).ended for c in children))
    kagzi_env.until(lambda: run.id in worker.cache.runs)
    run.signal("s", "x")
    assert run.result(20) == ["done", 2, 4, "x"]
    assert begun == [run.id]


def test_draining_drops_what_is_kept(kagzi_env):
    worker = kagzi_env.worker(three)
    run = kagzi_env.client.start(three, "x")
    kagzi_env.until(lambda: run.id in worker.cache.runs)
    kagzi_env.stop_workers()
    assert not worker.cache.runs
    kagzi_env.worker(three)
    for n in range(3):
        run.signal("a", str(n))
    assert run.result(20) == ["0", "1", "2"]


def test_the_limits_are_checked():
    with pytest.raises(kagzi.ConfigError, match="cache is -1, want 0 to 100000"):
        kagzi.Worker(three, profile="off", cache=-1)
