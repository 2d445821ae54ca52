"""Steps, sleeps, signals, children, continuation and values, each also with every await replayed."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypedDict

import pytest

import kagzi


@dataclass
class Item:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: str
    items: list[Item]


class Receipt(TypedDict):
    charge: str
    reserved: list[str]


@kagzi.step
def charge(o: Order) -> str:
    assert isinstance(o.items[0], Item)
    return f"{o.id}:{kagzi.idempotency_key().partition('/')[2]}:{kagzi.attempt()}"


@kagzi.step
async def reserve(sku: str) -> str:
    await asyncio.sleep(0)
    return sku.upper()


@kagzi.workflow
async def order(o: Order) -> Receipt:
    ref = await charge(o)
    async with asyncio.TaskGroup() as tg:
        tasks = [tg.create_task(reserve.named(f"reserve/{i.sku}")(i.sku)) for i in o.items]
    await kagzi.sleep("cool-off", 0.05)
    return {"charge": ref, "reserved": [t.result() for t in tasks]}


@pytest.mark.parametrize("always_suspend", [False, True])
def test_a_workflow_of_steps_branches_and_a_sleep(kagzi_env, always_suspend):
    got = kagzi_env.run(order, Order("o-1", [Item("a"), Item("b", 2)]), always_suspend=always_suspend)
    assert got == {"charge": "o-1:charge:1", "reserved": ["A", "B"]}
    run = next(kagzi_env.client.list())
    steps = kagzi_env.client.run(run.run_id).steps()
    assert sorted((s.name, s.branch) for s in steps) == [("charge", ""), ("cool-off", ""), ("reserve/a", "1"),
                                                         ("reserve/b", "2")]
    assert sorted(s.settled for s in steps) == [1, 2, 3, 4]


@kagzi.workflow
async def waits(_: int) -> list[object]:
    first = await kagzi.wait_signal("go", Item)
    try:
        await kagzi.wait_signal("never", limit=0.05)
    except kagzi.TimedOut as e:
        late = e.code
    second = await kagzi.wait_signal("go", int)
    return [first.sku, late, second]


@pytest.mark.parametrize("always_suspend", [False, True])
def test_signals_arrive_in_order_typed_and_with_a_limit(kagzi_env, always_suspend):
    run = kagzi_env.start(waits, 0, always_suspend=always_suspend)
    kagzi_env.waits(run)
    run.signal("go", {"sku": "x"}, id="1")
    run.signal("go", {"sku": "x"}, id="1")  # the same delivery
    run.signal("go", 7)
    assert run.result(20) == ["x", "TIMEOUT", 7]


@kagzi.workflow
async def double(n: int) -> int:
    if n < 0:
        raise kagzi.Failed("negative", type="sign")
    return 2 * await kagzi.do("n", lambda: n)


@kagzi.workflow
async def parent(n: int) -> list[object]:
    children = [await kagzi.start_child(f"c{i}", double, i, id=f"child-{kagzi.info().run_id}-{i}") for i in range(n)]
    outs = await kagzi.wait_all(children)
    try:
        await kagzi.run_child("bad", double, -1)
    except kagzi.RunError as e:
        failed = (e.type, e.step, e.workflow_type)
    try:
        await kagzi.start_child("again", "double", 1, id=f"child-{kagzi.info().run_id}-0", version="no spaces")
    except kagzi.StepError as e:
        refused = e.code
    return [outs, failed, refused, await children[0]]


@pytest.mark.parametrize("always_suspend", [False, True])
def test_children(kagzi_env, always_suspend):
    kagzi_env.worker(parent, double, always_suspend=always_suspend)
    got = kagzi_env.start(parent, 3, always_suspend=always_suspend).result(30)
    assert got == [[0, 2, 4], ["sign", "bad", "double"], "INVALID_ARGUMENT", 0]


@kagzi.workflow
async def count(n: int) -> int:
    if n < 3:
        kagzi.continue_as_new(n + 1)
    return n


def test_continue_as_new_is_followed(kagzi_env):
    run = kagzi_env.start(count, 0)
    assert run.result(20) == 3
    assert run.get().continued_as_run_id


@kagzi.workflow
async def values() -> list[object]:
    a = [kagzi.now().isoformat(), kagzi.random().random(), str(kagzi.uuid())]

    async def inside() -> float:
        return kagzi.random().random()

    b = await asyncio.gather(inside(), inside())
    await kagzi.do("s", int)
    return [a, b, str(kagzi.uuid()), kagzi.now() >= datetime.fromisoformat(str(a[0])), kagzi.patched("new")]


def test_values_are_the_same_in_every_replay(kagzi_env):
    got = kagzi_env.run(values, always_suspend=True)
    assert got[3] is True
    assert got[4] is True
    assert got[1][0] != got[1][1]
    names = {s.name for s in kagzi_env.client.run(next(kagzi_env.client.list()).run_id).steps()}
    assert {"kagzi:now", "kagzi:now:2", "kagzi:seed", "kagzi:seed/1", "kagzi:seed/2", "kagzi:patched:new"} <= names


@kagzi.workflow
async def repeated() -> list[int]:
    return [await kagzi.do("s", lambda i=i: i) for i in range(3)]


def test_a_repeated_name_is_numbered(kagzi_env):
    run = kagzi_env.start(repeated, always_suspend=True)
    assert run.result(20) == [0, 1, 2]
    assert [s.name for s in run.steps()] == ["s", "s:2", "s:3"]


tries: list[int] = []


@kagzi.step(retry=kagzi.Retry(attempts=3, initial=0.01))
def flaky() -> str:
    tries.append(kagzi.attempt())
    if len(tries) < 3:
        raise kagzi.Failed("not yet", type="early")
    return "done"


class Odd(Exception):
    kagzi_type = "odd"


@kagzi.step(retry=kagzi.Retry(attempts=5, initial=0.01, non_retryable=["odd"]))
async def hopeless(kind: str) -> None:
    if kind == "final":
        raise kagzi.NonRetryable("no", type="final")
    raise Odd(kind)


@kagzi.step(retry=kagzi.Retry(attempts=2))
def later() -> float:
    if kagzi.attempt() == 1:
        raise kagzi.RetryAfter("wait", timedelta(milliseconds=30))
    return time.time()


@kagzi.workflow
async def retries() -> list[object]:
    got: list[object] = [await flaky()]
    for kind in ("final", "listed"):
        try:
            await hopeless.named(kind)(kind)
        except kagzi.StepError as e:
            got.append([e.type, e.attempts, e.step])
    begun = time.time()
    got.append(await later() - begun < 0.9)
    return got


def test_retry_policies(kagzi_env):
    tries.clear()
    assert kagzi_env.run(retries) == ["done", ["final", 1, "final"], ["odd", 1, "listed"], True]
    assert tries == [1, 2, 3]


@kagzi.step
def doomed() -> None:
    raise kagzi.Failed("no")


@kagzi.workflow
async def ends_in_vain() -> None:
    await doomed()


def test_steps_and_function_are_retried_by_their_own_policies(kagzi_env):
    quick = {n: kagzi.Retry(attempts=n, initial=0.01) for n in (2, 3)}
    kagzi_env.worker(ends_in_vain)
    for options, attempts, of_step in (({"step_retry": quick[3]}, 1, 3),
                                       ({"step_retry": quick[2], "run_retry": quick[3]}, 3, 6),
                                       ({"retry": quick[2]}, 2, 4)):
        run = kagzi_env.client.start(ends_in_vain, **options)
        with pytest.raises(kagzi.RunError):
            run.result(20)
        d = run.get()
        assert (d.attempts, d.step_retries, len(run.steps())) == (attempts, of_step - attempts, of_step)


@kagzi.workflow
async def first_of(seconds: float) -> list[object]:
    index, task = await kagzi.first(kagzi.wait_signal("ok", bool), kagzi.sleep("late", seconds))
    ends = [t.result() async for t in kagzi.as_completed([kagzi.do("x", lambda: "x"), kagzi.do("y", lambda: "y")])]
    return [index, task.result(), sorted(ends)]


@pytest.mark.parametrize("always_suspend", [False, True])
def test_first_of_a_signal_and_a_timer(kagzi_env, always_suspend):
    assert kagzi_env.run(first_of, 0.05, always_suspend=always_suspend) == [1, None, ["x", "y"]]
    run = kagzi_env.start(first_of, 60.0, always_suspend=always_suspend)
    run.signal("ok", True)
    assert run.result(20) == [0, True, ["x", "y"]]


cleaned: list[str] = []


@kagzi.workflow
async def cancellable() -> None:
    await kagzi.do("book", lambda: cleaned.append("book"))
    try:
        await kagzi.wait_signal("never")
    except kagzi.Cancelled:
        async with kagzi.cleanup():
            await kagzi.do("undo", lambda: cleaned.append("undo"))
        raise


def test_cancel_lets_the_code_clean_up(kagzi_env):
    cleaned.clear()
    run = kagzi_env.start(cancellable)
    kagzi_env.waits(run)
    run.cancel("changed my mind", grace=20)
    assert run.wait(20).status == "CANCELLED"
    assert cleaned == ["book", "undo"]
    assert "kagzi:cancelled" in [s.name for s in run.steps()]


heard = threading.Event()


@kagzi.step(timeout=0.2, retry=kagzi.Retry(attempts=1))
def deaf() -> None:
    while not kagzi.step_cancelled():
        time.sleep(0.005)
    heard.set()


@kagzi.step(timeout=0.2, retry=kagzi.Retry(attempts=1))
async def patient() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        heard.set()
        raise


@kagzi.workflow
async def slow(kind: str) -> str:
    try:
        await (deaf() if kind == "sync" else patient())
    except kagzi.TimedOut as e:
        return e.message
    return "no time-out"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_step_that_times_out_hears_it(kagzi_env, kind):
    heard.clear()
    assert "timed out after 0.2 s" in kagzi_env.run(slow, kind)
    assert heard.wait(5)


@kagzi.workflow
async def noted() -> dict[str, object]:
    kagzi.note("half way")
    i = kagzi.info()
    await kagzi.sleep("s", 0.02)
    return {"type": i.workflow_type, "tags": dict(i.tags), "attempt": i.attempt, "external": i.external_id}


def test_note_and_info(kagzi_env):
    run = kagzi_env.start(noted, id="n-1", tags={"a": "b"})
    assert run.result(20) == {"type": "noted", "tags": {"a": "b"}, "attempt": 1, "external": "n-1"}
    assert run.get().note == "half way"


def test_a_run_whose_input_does_not_fit_fails_with_the_path(kagzi_env):
    run = kagzi_env.start(order, {"id": "x", "items": [{"sku": "a"}, {"sku": "b"}, {"sku": 5}]})
    with pytest.raises(kagzi.RunError, match=r"type order: items\[2\]\.sku: want a text, got a number"):
        run.result(20)


@kagzi.workflow
async def until() -> bool:
    await kagzi.sleep_until("past", datetime(2020, 1, 1, tzinfo=UTC))
    await kagzi.sleep("none", 0)
    return True


def test_a_sleep_whose_time_has_passed_is_recorded_and_goes_on(kagzi_env):
    run = kagzi_env.start(until, always_suspend=True)
    assert run.result(20)
    assert [s.name for s in run.steps()] == ["past", "none"]


def test_steps_are_replaced_by_name(kagzi_env):
    kagzi_env.replace("charge", lambda o: f"fake {o.id}")
    assert kagzi_env.run(order, Order("r", [Item("a")]))["charge"] == "fake r"
