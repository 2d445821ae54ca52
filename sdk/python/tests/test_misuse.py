"""What workflow code may not do fails the run with the line and what to write instead; a worker lives on."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import threading
import time

import pytest

import kagzi
from kagzi import errors
from kagzi.policy import start_request
from kagzi.v1.common_pb2 import Payload


async def by_sleep() -> None:
    await asyncio.sleep(1)


async def by_timeout() -> None:
    async with asyncio.timeout(1):
        await kagzi.do("s", int)


async def by_wait_for() -> None:
    await asyncio.wait_for(kagzi.do("s", int), 1)


async def by_wait() -> None:
    await asyncio.wait([asyncio.ensure_future(kagzi.do("s", int))])


async def by_as_completed() -> None:
    for one in asyncio.as_completed([kagzi.do(f"s{i}", int) for i in range(8)]):
        await one


async def by_thread() -> None:
    await asyncio.to_thread(time.sleep, 0)


async def by_executor() -> None:
    await asyncio.get_running_loop().run_in_executor(None, int)


async def by_socket() -> None:
    await asyncio.open_connection("127.0.0.1", 1)


async def by_process() -> None:
    await asyncio.create_subprocess_exec("true")


WAYS = {
    "sleep": (by_sleep, "kagzi.sleep"), "timeout": (by_timeout, "kagzi.first"),
    "wait_for": (by_wait_for, "kagzi.first"),
    "wait": (by_wait, "kagzi.first"), "as_completed": (by_as_completed, "kagzi.as_completed"),
    "thread": (by_thread, "in a step"), "executor": (by_executor, "in a step"), "socket": (by_socket, "in a step"),
    "process": (by_process, "in a step"),
}


@kagzi.workflow
async def misuse(way: str) -> str:
    try:
        await WAYS[way][0]()
    except Exception:
        pass  # it fails the run although the code goes on
    return "went on"


@pytest.mark.parametrize("way", WAYS)
def test_a_clock_threads_and_io_fail_the_run(kagzi_env, way):
    run = kagzi_env.start(misuse, way)
    with pytest.raises(kagzi.RunError) as e:
        run.result(20)
    assert "test_misuse.py:" in e.value.message
    assert WAYS[way][1] in e.value.message


@kagzi.workflow
async def leaves(how: str) -> None:
    if how == "exit":
        sys.exit(3)
    if how == "task":
        await asyncio.gather(_exits())
    if how == "step":
        await kagzi.do("s", lambda: sys.exit(4), retry=kagzi.Retry(attempts=1))
    if how == "async step":
        await kagzi.do("s", _exits, retry=kagzi.Retry(attempts=1))
    if how == "base":
        raise BaseException("odd")


async def _exits() -> None:
    sys.exit(5)


@kagzi.workflow
async def healthy() -> str:
    return await kagzi.do("s", lambda: "healthy")


@pytest.mark.parametrize("how", ["exit", "task", "step", "async step", "base"])
def test_sys_exit_stays_inside_the_run(kagzi_env, how):
    kagzi_env.worker(leaves, healthy)
    run = kagzi_env.client.start(leaves, how)
    assert run.wait(20).status == "FAILED"
    assert kagzi_env.client.start(healthy).result(20) == "healthy"


@kagzi.workflow
async def nested() -> None:
    async def inner() -> None:
        await kagzi.do("inside", int)

    await kagzi.do("outer", inner)


def test_a_call_inside_a_step_fails_the_run(kagzi_env):
    with pytest.raises(kagzi.RunError, match="inside step outer"):
        kagzi_env.run(nested)


@kagzi.workflow
async def clash() -> None:
    await asyncio.gather(kagzi.do("s", int), kagzi.do("s", int))


@kagzi.workflow
async def unjoined() -> None:
    async def one() -> None:
        await kagzi.do("s", int)
        await kagzi.wait_signal("never")

    task = asyncio.ensure_future(one())
    await kagzi.first(task, kagzi.do("other", int))
    await kagzi.do("third", int)
    await kagzi.do("s", int)


@kagzi.workflow
async def joined() -> list[int]:
    got = []
    for i in range(3):
        got += await asyncio.gather(kagzi.do("s", lambda i=i: i))
    return [*got, await kagzi.do("s", lambda: 9)]


@pytest.mark.parametrize("workflow", [clash, unjoined], ids=["at once", "not joined"])
def test_a_name_of_two_branches_at_once_fails_the_run(kagzi_env, workflow):
    with pytest.raises(kagzi.RunError, match="two branches at once") as e:
        kagzi_env.run(workflow)
    assert e.value.type == "step_name_clash"


def test_a_name_of_a_joined_branch_is_numbered(kagzi_env):
    run = kagzi_env.start(joined, always_suspend=True)
    assert run.result(20) == [0, 1, 2, 9]
    assert [(s.name, s.branch) for s in run.steps()] == [("s", "1"), ("s:2", "2"), ("s:3", "3"), ("s:4", "")]


@kagzi.workflow
async def deadlock() -> None:
    await asyncio.Event().wait()


def test_a_run_that_can_never_go_on_fails(kagzi_env):
    with pytest.raises(kagzi.RunError, match="none ever goes on"):
        kagzi_env.run(deadlock)


@kagzi.workflow
async def reserved() -> None:
    await kagzi.do("kagzi:mine", int)


@kagzi.workflow
async def spaced() -> None:
    await kagzi.do("no spaces", int)


def test_bad_names_fail_the_run(kagzi_env):
    kagzi_env.worker(reserved, spaced)
    with pytest.raises(kagzi.RunError, match="reserved for the SDK"):
        kagzi_env.client.start(reserved).result(20)
    with pytest.raises(kagzi.RunError, match="only letters, digits"):
        kagzi_env.client.start(spaced).result(20)


@kagzi.workflow
async def unawaited() -> str:
    async def fails() -> None:
        await kagzi.do("s", lambda: 1 / 0, retry=kagzi.Retry(attempts=1))

    asyncio.ensure_future(fails())
    await kagzi.sleep("s2", 0.05)
    return "ended"


def test_a_failing_task_that_nobody_awaits_does_not_end_the_worker(kagzi_env):
    kagzi_env.worker(unawaited, healthy)
    assert kagzi_env.client.start(unawaited).result(20) == "ended"
    assert kagzi_env.client.start(healthy).result(20) == "healthy"


release = threading.Event()


@kagzi.workflow
async def blocks() -> None:
    release.wait(20)


def test_code_that_blocks_is_reported_with_its_stack_and_does_not_stop_heartbeats(kagzi_env, caplog, monkeypatch):
    from kagzi import _code

    monkeypatch.setattr(_code, "_BLOCKED_AFTER", 0.5)
    caplog.set_level(logging.WARNING, "kagzi")
    release.clear()
    worker = kagzi_env.worker(blocks)
    run = kagzi_env.client.start(blocks)
    beat = worker.session.confirmed
    kagzi_env.until(lambda: "release.wait(20)" in caplog.text)
    kagzi_env.until(lambda: worker.session.confirmed > beat)
    assert run.get().status == "RUNNING"
    release.set()
    run.result(20)


def test_a_scope_of_a_concurrency_key_is_sent():
    for scope, sent in (("slot", 0), ("open", 2)):
        request = start_request("default", "t", Payload(), "", 0, {"concurrency_key": "k", "concurrency_scope": scope})
        assert request.concurrency_scope == sent


def test_policies_of_steps_and_of_the_run_are_sent_apart():
    a, b, c = kagzi.Retry(attempts=2), kagzi.Retry(attempts=3), kagzi.Retry(attempts=4)
    for options, steps, run in (
        ({}, 0, 0),
        ({"step_retry": a}, 2, 1),  # a policy of steps alone would be the run's, too
        ({"run_retry": b}, 0, 3),
        ({"step_retry": a, "run_retry": b}, 2, 3),
        ({"retry": c}, 4, 0),
        ({"retry": c, "step_retry": a}, 2, 4),
        ({"retry": c, "run_retry": b}, 4, 3),
    ):
        request = start_request("default", "t", Payload(), "", 0, options)
        assert (request.retry_policy.maximum_attempts, request.run_retry_policy.maximum_attempts) == (steps, run)
        assert request.HasField("run_retry_policy") == (run != 0)


def test_options_are_checked_with_their_names():
    for make, text in (
        (kagzi.Worker, "at least one workflow"),
        (lambda: kagzi.Worker(healthy, max_concurrent=0, profile="off"), "max_concurrent"),
        (lambda: kagzi.Worker(healthy, type_limits={"x": 1}, profile="off"), "type_limits names 'x'"),
        (lambda: kagzi.Worker(healthy, address="nowhere", profile="off"), "want host:port"),
        (lambda: kagzi.Worker(healthy, healthy, profile="off"), "given twice"),
        (lambda: kagzi.Worker(healthy, on_divergence="stop", profile="off"), "on_divergence"),
        (lambda: kagzi.Retry(attempts=-2).wire(), "Retry.attempts"),
        (lambda: kagzi.Retry(coefficient=0.5).wire(), "Retry.coefficient"),
        (lambda: kagzi.Retry(non_retryable="x").wire(), "Retry.non_retryable"),
        (lambda: kagzi.Client(address="10.0.0.1:1", api_key="kz_x", profile="off"), "without encryption"),
        (lambda: kagzi.workflow(int.__add__, name="x"), "must be async"),
        (lambda: start_request("default", "t", Payload(), "", 0, {"concurrency_scope": "all"}), "want slot or open"),
    ):
        with pytest.raises(kagzi.ConfigError, match=text):
            make()


def test_unknown_codes_and_statuses_of_a_newer_server_are_named():
    from kagzi._details import status_name

    assert errors.code_name(4711) == "CODE_4711"
    assert status_name(4711) == "STATUS_4711"
    assert random.random() < 1
