"""Ten constructs around a suspended call, in two columns: parked they see nothing; dropped they run what the rule says.

The rule: what the author has in finally and in handlers of BaseException runs up to its first await. Nothing is sent,
and no other run is touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
from pathlib import Path

import pytest

import kagzi
from kagzi import _loop
from kagzi._calls import Call
from kagzi._loop import Branch
from kagzi._run import Run

seen: dict[str, list[str]] = {}


def see(what: str) -> None:
    seen.setdefault(kagzi.info().run_id, []).append(what)


@kagzi.workflow
async def bare() -> None:
    try:
        await kagzi.wait_signal("a")
    except:
        see("bare except")


@kagzi.workflow
async def base() -> None:
    try:
        await kagzi.wait_signal("a")
    except BaseException as e:
        see(f"saw {type(e).__name__}")
        raise


@kagzi.workflow
async def suppress() -> None:
    with contextlib.suppress(BaseException):
        await kagzi.wait_signal("a")
    see("after suppress")
    await kagzi.do("b", lambda: see("step b"))
    see("after b")


@kagzi.workflow
async def gathered() -> None:
    async def one(n: str) -> None:
        try:
            await kagzi.wait_signal(n)
        finally:
            see(f"finally {n}")

    got = await asyncio.gather(one("a"), one("b"), return_exceptions=True)
    see(f"gathered {got}")


@kagzi.workflow
async def group() -> None:
    async def one(n: str) -> None:
        try:
            await kagzi.wait_signal(n)
        except BaseException as e:
            see(f"{n} saw {type(e).__name__}")
            raise

    async with asyncio.TaskGroup() as tg:
        tg.create_task(one("a"))
        tg.create_task(one("b"))
    see("after the group")


@kagzi.workflow
async def finally_awaits() -> None:
    try:
        await kagzi.wait_signal("a")
    finally:
        see("finally")
        await kagzi.do("undo", lambda: see("undo ran"))
        see("after undo")


@kagzi.workflow
async def return_in_finally() -> str:
    try:
        await kagzi.wait_signal("a")
    finally:
        see("finally")
        return "swallowed"


@kagzi.workflow
async def own_task() -> None:
    async def one() -> None:
        await kagzi.wait_signal("a")
        see("after a")

    task = asyncio.ensure_future(one())
    try:
        await task
    except BaseException as e:
        see(f"outer saw {type(e).__name__}")


class Manager:
    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, kind: object, *_: object) -> bool:
        see("__aexit__")
        await kagzi.do("exit", lambda: see("exit ran"))
        return True


@kagzi.workflow
async def async_with() -> None:
    async with Manager():
        await kagzi.wait_signal("a")
    see("after async with")


@kagzi.workflow
async def generator() -> None:
    async def items():
        try:
            yield 1
            await kagzi.wait_signal("a")
            yield 2
        finally:
            see("generator finally")

    async for _ in items():
        pass
    see("after the generator")


@kagzi.workflow
async def generator_left() -> None:
    async def items():
        try:
            yield 1
        finally:
            see("generator finally")

    async for _ in items():
        break
    await kagzi.wait_signal("a")


@kagzi.workflow
async def loops() -> None:
    while True:
        try:
            await kagzi.wait_signal("a")
        except BaseException:
            pass


MATRIX = {
    bare: ["bare except"],
    base: ["saw Dropped"],
    suppress: ["after suppress"],
    gathered: ["finally b", "finally a"],
    group: ["b saw Dropped", "a saw Dropped"],
    finally_awaits: ["finally"],
    return_in_finally: ["finally"],
    own_task: ["outer saw Dropped"],
    async_with: ["__aexit__"],
    generator: ["generator finally"],
    generator_left: ["generator finally"],
}


@pytest.mark.parametrize("workflow", MATRIX, ids=lambda w: w.name)
def test_kept_in_memory_it_sees_nothing_and_dropped_it_runs_what_the_rule_says(kagzi_env, workflow):
    seen.clear()
    worker = kagzi_env.worker(workflow)
    run = kagzi_env.client.start(workflow)
    kagzi_env.until(lambda: run.id in worker.cache.runs)
    gc.collect()
    assert run.id not in seen
    worker.loop.call_soon_threadsafe(worker.cache.clear)
    kagzi_env.until(lambda: run.id in seen)
    gc.collect()
    assert seen[run.id] == MATRIX[workflow]
    assert all(s.kind == 100 for s in run.steps()), "only the waits for signals are recorded"


@pytest.mark.parametrize("workflow", MATRIX, ids=lambda w: w.name)
def test_parked_sees_nothing_and_dropped_runs_what_the_rule_says(kagzi_env, monkeypatch, workflow):
    seen.clear()
    frozen, let_go, real = threading.Event(), threading.Event(), _loop.RunLoop.close

    def close(self: _loop.RunLoop) -> None:  # the worker's thread stops between parking and dropping
        frozen.set()
        assert let_go.wait(10)
        real(self)

    monkeypatch.setattr(_loop.RunLoop, "close", close)
    kagzi_env.worker(workflow, cache=0)
    run = kagzi_env.client.start(workflow)
    assert frozen.wait(10)
    parked = {k: list(v) for k, v in seen.items()}
    let_go.set()
    kagzi_env.waits(run)
    kagzi_env.until(lambda: run.id in seen)
    assert parked.get(run.id) is None
    gc.collect()
    assert seen[run.id] == MATRIX[workflow]
    steps = {s.name for s in run.steps()}
    assert steps <= {"a", "b"}
    assert not steps & {"undo", "exit"}
    assert all(s.kind == 100 for s in run.steps()), "only the waits for signals are recorded"


def test_a_frame_that_cannot_be_dropped_is_kept_and_named(kagzi_env, caplog):
    before = len(_loop.kept)
    kagzi_env.worker(loops, cache=0)
    run = kagzi_env.client.start(loops)
    kagzi_env.waits(run)
    kagzi_env.until(lambda: len(_loop.kept) == before + 1)
    gc.collect()
    kagzi_env.until(lambda: "test_suspension.py" in caplog.text)
    assert [s.name for s in run.steps()] == ["a"]


@kagzi.workflow
async def refunds() -> None:
    try:
        await kagzi.wait_signal("a1")
    finally:
        await kagzi.do("refund-of-A", lambda: None)


@kagzi.workflow
async def collects() -> None:
    gc.collect()  # the collector runs whenever it wants
    await kagzi.do("b1", gc.collect)
    await kagzi.sleep("s", 0.01)
    gc.collect()


def test_dropping_one_run_touches_no_other(kagzi_env):
    """cross.py of the design: run A is dropped while B runs, and A's refund must not be recorded in B."""
    kagzi_env.worker(refunds, collects, cache=0)
    a = kagzi_env.client.start(refunds)
    others = [kagzi_env.client.start(collects) for _ in range(20)]
    kagzi_env.waits(a)
    for b in others:
        b.result(20)
        assert [s.name for s in b.steps()] == ["b1", "s"]
    assert [s.name for s in a.steps()] == ["a1"]


@kagzi.workflow
async def busy() -> None:
    try:
        await asyncio.gather(kagzi.wait_signal("a"), kagzi.do("long", lambda: gate.wait(10)))
    finally:
        see("finally")
        await kagzi.do("undo", lambda: None)
        see("after undo")


gate = threading.Event()


def test_at_shutdown_runs_are_closed_on_their_own_loop_and_nothing_is_sent(kagzi_env):
    seen.clear()
    gate.clear()
    worker = kagzi_env.worker(busy, drain_timeout=0.0)
    run = kagzi_env.client.start(busy)
    kagzi_env.until(lambda: worker.steps_running)
    threading.Timer(0.2, gate.set).start()
    kagzi_env.stop_workers()
    assert seen[run.id][0] == "finally"
    assert "undo" not in {s.name for s in run.steps()}
    assert run.get().status in ("PENDING", "SLEEPING", "RUNNING")


def alive() -> int:
    gc.collect()
    return sum(isinstance(o, Run | _loop.RunLoop) for o in gc.get_objects())


@kagzi.workflow
async def sleeper() -> None:
    data = [str(i) for i in range(50)]
    try:
        await kagzi.wait_signal("a")
    finally:
        data.clear()


def resident() -> int:
    """Returns the bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cleared(worker: kagzi.Worker) -> bool:
    """Drops the runs in memory, and says whether there were none."""
    kept = bool(worker.cache.runs)
    worker.loop.call_soon_threadsafe(worker.cache.clear)
    return not kept


RUNS = 10_000 if os.environ.get("KAGZI_TEST_LONG") else 1_000


def ours() -> list[object]:
    return [o for o in gc.get_objects() if isinstance(o, Run | _loop.RunLoop | Branch | Call)]


@kagzi.workflow
async def ends(fails: bool) -> int:
    got = sum(await asyncio.gather(*(kagzi.do(f"s-{i}", lambda i=i: i) for i in range(5))))
    await kagzi.sleep("nap", 0.01)
    await kagzi.run_child("child", none)
    if fails:
        raise ValueError("odd")
    return got


@kagzi.workflow
async def none() -> None:
    pass


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_is_over_leaves_nothing_to_the_collector(kagzi_env, fails):
    """Its frames and calls are many objects, and the collector takes the time of other runs."""
    worker = kagzi_env.worker(ends, none)
    gc.collect()
    before = ours()  # a worker of an earlier test may know some
    gc.disable()
    try:
        runs = [kagzi_env.start(ends, fails) for _ in range(5)]
        assert {kagzi_env.until(lambda r=r: r.get().ended and r.get().status) for r in runs} == {
            "FAILED" if fails else "COMPLETED"}
        kagzi_env.until(lambda: not worker.runs and not worker.young._steps)
        kagzi_env.stop_workers()
        left = [o for o in ours() if not any(o is b for b in before)]
        assert left == []
    finally:
        gc.enable()


def test_parked_runs_leave_nothing_behind(kagzi_env, capsys):
    """Memory is stated; after dropping it is flat: a second lot needs no more than the first."""
    before, peaks = alive(), []
    worker = kagzi_env.worker(sleeper, cache=RUNS)
    for _ in range(2):
        gc.collect()
        empty = resident()
        for _ in range(RUNS // 500):
            kagzi_env.client.start_many(sleeper, [None] * 500)
        # one whose operation was repeated after a lost answer need not be kept
        kagzi_env.until(lambda: len(worker.cache.runs) >= 0.99 * RUNS, 120)
        peaks.append(resident())
        kept = worker.cache.size
        # the last runs may be parked only now, and the thread of the connection may still hold one and its loop
        kagzi_env.until(lambda: cleared(worker) and alive() <= before + 2, 60)
        with capsys.disabled():
            each = (peaks[-1] - empty) / RUNS / 1024
            print(f"\n{RUNS} parked runs: {each:.1f} KiB each, counted as {kept / RUNS / 1024:.1f} KiB")
    assert worker.cache.size == 0
    assert peaks[1] < peaks[0] + 2048 * RUNS + (16 << 20)
