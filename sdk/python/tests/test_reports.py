"""Faults that users of other systems have reported, as tests."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import kagzi
from kagzi import _calls, v1
from kagzi._calls import StepCall, StepInfo


@kagzi.workflow
async def eight() -> list[int]:
    async def one(i: int) -> int:
        await kagzi.sleep(f"nap-{i}", 0.01 * (i * 5 % 8))
        return await kagzi.do(f"s-{i}", lambda: i)

    got = []
    async for task in kagzi.as_completed([one(i) for i in range(8)]):
        got.append(task.result())
        await kagzi.do(f"seen-{len(got)}-{got[-1]}", lambda: None)
    return got


@pytest.mark.parametrize("always_suspend", [False, True])
def test_as_completed_of_eight_is_in_order_in_each_replay(kagzi_env, always_suspend):
    """temporalio/sdk-python 518 and 429. Another order in a replay would make other steps, and diverge."""
    run = kagzi_env.start(eight, always_suspend=always_suspend)
    got = kagzi_env.result(run)
    assert sorted(got) == list(range(8))
    assert [s.name for s in run.steps() if "seen" in s.name] == [f"seen-{n}-{i}" for n, i in enumerate(got, 1)]


gate, inside = threading.Event(), threading.Event()


def waits_at_the_gate() -> str:
    inside.set()
    return "passed" if gate.wait(20) else "late"


async def waits_for_its_end() -> None:
    await asyncio.Event().wait()


@kagzi.workflow
async def cancelled_at_the_end() -> list[str]:
    got = [await kagzi.do("first", waits_at_the_gate)]
    try:
        await kagzi.do("second", waits_for_its_end)
    except kagzi.Cancelled:
        async with kagzi.cleanup():
            got.append(await kagzi.do("undo", lambda: "undone"))
    return got


def test_a_cancellation_as_a_step_ends_is_not_swallowed(kagzi_env):
    """temporalio/sdk-python 620."""
    gate.clear()
    inside.clear()
    kagzi_env.worker(cancelled_at_the_end)
    run = kagzi_env.client.start(cancelled_at_the_end)
    assert inside.wait(20)
    run.cancel("enough", grace=20)
    gate.set()
    assert run.wait(20).status == "CANCELLED"
    names = {s.name: s.status for s in run.steps()}
    assert "undo" in names
    assert names.get("second") != names["first"]  # it is not begun, or ended by the cancellation, but never completed


@kagzi.workflow
async def cancels_tasks() -> list[str]:
    heard = []

    async def never() -> None:
        heard.append("began")

    early = asyncio.create_task(never())
    early.cancel()  # before its first instruction
    napping = asyncio.create_task(kagzi.sleep("nap", 0.05))
    await kagzi.do("a", lambda: None)
    napping.cancel()
    for task in (early, napping):
        try:
            await task
        except asyncio.CancelledError:
            heard.append("cancelled")
    await kagzi.sleep("longer", 0.1)  # its time passes
    return heard


@pytest.mark.parametrize("always_suspend", [False, True])
def test_a_cancelled_task_is_heard_at_its_beginning_and_in_a_sleep(kagzi_env, always_suspend, caplog):
    """temporalio/sdk-python 91, 94 and 1351."""
    assert kagzi_env.run(cancels_tasks, always_suspend=always_suspend) == ["cancelled", "cancelled"]
    assert "InvalidState" not in caplog.text


late = threading.Event()


@kagzi.workflow
async def times_out() -> str:
    def slow() -> None:
        late.wait(20)

    try:
        await kagzi.do("slow", slow, timeout=0.1, retry=kagzi.Retry(attempts=1))
    except kagzi.TimedOut:
        late.set()
    return await kagzi.do("next", lambda: "the thread lives")


def test_a_thread_lives_on_after_a_step_that_timed_out(kagzi_env):
    """temporalio/sdk-python 1648."""
    late.clear()
    kagzi_env.worker(times_out, threads=1)
    assert kagzi_env.client.start(times_out).result(20) == "the thread lives"


@kagzi.workflow
async def many() -> list[int]:
    return await asyncio.gather(kagzi.do("hold", int, timeout=7200), *(
        kagzi.do(f"s-{i}", lambda i=i: i, timeout=60, retry=kagzi.Retry(attempts=1)) for i in range(1, 20)))


def test_the_time_of_a_step_does_not_count_while_it_waits_for_a_thread(kagzi_env, monkeypatch):
    """temporalio/sdk-python 1168: 19 steps with a limit of a minute wait for the only thread for an hour."""
    ahead, waiting, looked_at = 0.0, {f"s-{i}" for i in range(1, 20)}, threading.Event()
    tick = StepCall.tick

    def looks(call: StepCall, info: StepInfo) -> None:
        tick(call, info)
        if ahead:
            waiting.discard(call.name)
            if not waiting:
                looked_at.set()

    def hold() -> int:
        nonlocal ahead
        ahead = 3600.0
        return 0 if looked_at.wait(20) else -1

    monkeypatch.setattr(_calls, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + ahead))
    monkeypatch.setattr(StepCall, "tick", looks)
    kagzi_env.replace("hold", hold)
    kagzi_env.worker(many, threads=1)
    assert kagzi_env.client.start(many).result(40) == list(range(20))


who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@kagzi.workflow
async def context(name: str) -> list[str]:
    who.set(name)

    async def async_step() -> str:
        return who.get()

    return [await kagzi.do("sync", who.get), await kagzi.do("async", async_step)]


def test_context_variables_reach_steps(kagzi_env):
    """temporalio/sdk-python 263."""
    kagzi_env.worker(context)
    runs = [kagzi_env.client.start(context, n) for n in ("a", "b")]
    assert [r.result(20) for r in runs] == [["a", "a"], ["b", "b"]]


def test_the_generated_code_loads_under_each_protobuf():
    """temporalio/sdk-python 1080: code of newer generators refuses other versions of the runtime."""
    files = list(Path(v1.__file__).parent.glob("*_pb2.py"))
    assert len(files) == 6
    assert not [f.name for f in files if "runtime_version" in f.read_text()]


@kagzi.workflow
async def three() -> list[str]:
    order = []

    async def one(i: int) -> None:
        await kagzi.do(f"s-{i}", lambda: i)
        order.append(f"s-{i}")

    await asyncio.gather(*(one(i) for i in range(3)))
    await kagzi.do("-".join(order), lambda: None)
    return order


def test_three_steps_over_two_workers_keep_their_order(kagzi_env):
    """dbos-transact-py 688: another order would be another name of the last step."""
    for n in range(2):
        kagzi_env.worker(three, always_suspend=True, worker_id=f"w-{n}")
    runs = [kagzi_env.client.start(three) for _ in range(10)]
    for run in runs:
        assert run.steps()[-1].name == "-".join(run.result(20)) if run.result(20) else False


@kagzi.workflow
async def final() -> str:
    def body() -> None:
        raise kagzi.NonRetryable("no")

    try:
        await kagzi.do("s", body, retry=kagzi.Retry(attempts=9))
    except kagzi.StepError as e:
        return f"{e.attempts} {e.non_retryable}"
    return "?"


def test_a_non_retryable_error_has_one_attempt(kagzi_env):
    """inngest-js 209."""
    assert kagzi_env.run(final) == "1 True"


@kagzi.workflow
async def large() -> str:
    return await kagzi.do("s", lambda: "x" * (1_900_000))


@kagzi.workflow
async def gathers() -> list[int]:
    children = [await kagzi.start_child(f"c-{i}", large) for i in range(3)]
    return [len(text) for text in await kagzi.wait_all(children)]


def test_results_of_children_of_5_mib_are_received(kagzi_env):
    """dapr/python-sdk 1084: more than the 4 MiB that gRPC receives by default."""
    kagzi_env.worker(gathers, large)
    assert kagzi_env.client.start(gathers).result(40) == [1_900_000] * 3


@dataclasses.dataclass
class Thing:
    pair: tuple[int, int]
    name: str = "n"


class Odd(Exception):
    """An exception of the application."""


@kagzi.workflow
async def equal() -> list[str]:
    def thing() -> Thing:
        return Thing((1, 2))

    def plain() -> object:
        return (1, {2: (3,)}, Thing((1, 2)))

    def fails() -> None:
        raise Odd("odd")

    got = [repr(await kagzi.do("thing", thing)), repr(await kagzi.do("plain", plain))]
    try:
        await kagzi.do("fails", fails, retry=kagzi.Retry(attempts=1))
    except Exception as e:
        got.append(f"{type(e).__name__} {e} {e.type!r} {e.code!r} {e.attempts}")
    return got


def test_results_and_errors_of_the_first_run_equal_those_of_a_replay(kagzi_env):
    """aws-durable-execution-sdk-python 407."""
    first = kagzi_env.run(equal)
    assert first == kagzi_env.run(equal, always_suspend=True)
    assert first == ["Thing(pair=(1, 2), name='n')", "[1, {'2': [3]}, {'pair': [1, 2], 'name': 'n'}]",
                     "StepError step fails: odd '' '' 1"]
