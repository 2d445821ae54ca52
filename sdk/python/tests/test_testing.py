"""The test environment: time that jumps, every await suspended, steps replaced by name."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

import kagzi
from kagzi.testing import Server


@kagzi.step(retry=kagzi.Retry(attempts=3, initial=timedelta(hours=1), max=timedelta(hours=9)))
def flaky() -> str:
    if kagzi.attempt() < 3:
        raise ValueError("not yet")
    return f"attempt {kagzi.attempt()}"


@kagzi.workflow
async def month() -> list[str]:
    began = kagzi.now()
    got = [await flaky()]
    await kagzi.sleep("month", timedelta(days=30))
    try:
        await kagzi.wait_signal("never", limit=timedelta(days=7))
    except kagzi.TimedOut:
        got.append("no signal")
    return [*got, str((kagzi.now() - began).days)]


@pytest.mark.parametrize("always_suspend", [False, True])
def test_time_jumps_over_sleeps_limits_and_retries(kagzi_env, always_suspend):
    began = time.monotonic()
    assert kagzi_env.run(month, always_suspend=always_suspend) == ["attempt 3", "no signal", "37"]
    assert time.monotonic() - began < 25


@kagzi.workflow
async def waits() -> None:
    await kagzi.wait_signal("never")


def test_time_jumps_to_the_deadline_of_a_run(kagzi_env):
    with pytest.raises(kagzi.RunError) as e:
        kagzi_env.run(waits, execution_timeout=timedelta(days=3))
    assert e.value.status == "TIMED_OUT"


def test_a_run_that_waits_for_ever_is_explained(kagzi_env):
    with pytest.raises(TimeoutError, match="has not ended: .*signal never"):
        kagzi_env.run(waits, timeout=0.5)


@kagzi.workflow
async def tick() -> str:
    return str(kagzi.info().scheduled_at)


def test_schedules_fire_when_time_passes(kagzi_env):
    s = kagzi_env.client.create_schedule(tick, "0 6 * * *")
    kagzi_env.worker(tick)
    due = s.get().next_fire_at
    assert not list(s.runs())
    kagzi_env.pass_time(due - kagzi_env.pass_time())
    fired = kagzi_env.until(lambda: list(s.runs()))
    assert kagzi_env.client.run(fired[0].run_id, str).result(20) == str(due)


@kagzi.workflow
async def charges(n: int) -> str:
    return await charge(n)


@kagzi.step
def charge(n: int) -> str:
    raise AssertionError("the real one")


def test_steps_are_replaced_by_name_in_sync_and_async_form(kagzi_env):
    kagzi_env.replace("charge", lambda n: f"test {n}")
    assert kagzi_env.run(charges, 1) == "test 1"

    async def other(n: int) -> str:
        return f"async {n}"

    kagzi_env.replace("charge", other)
    assert kagzi_env.run(charges, 2, always_suspend=True) == "async 2"


def test_a_server_without_that_clock_says_so():
    server = Server()
    try:
        with pytest.raises(kagzi.KagziError, match="Server\\(clock=True\\)"):
            server.pass_time(1)
    finally:
        server.close()


def test_the_clock_goes_forwards_only(kagzi_server):
    now = kagzi_server.pass_time()
    with pytest.raises(kagzi.KagziError, match="it goes forwards only"):
        kagzi_server.pass_time(-5)
    assert kagzi_server.pass_time(timedelta(hours=2)) - now > timedelta(hours=2) - timedelta(seconds=1)
