"""``kagzi check`` finds the open runs that a new build cannot continue; capsules are replayed without a server."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap

import pytest

import kagzi
from kagzi.testing import find_binary

OLD = """
    import kagzi

    @kagzi.workflow
    async def job(n: int) -> str:
        got = await kagzi.do("reserve", lambda: "r")
        return got + await kagzi.wait_signal("go", str)

    if __name__ == "__main__":
        kagzi.serve(job)
"""


def check(env, folder, *, python_m=False):
    command = ["-m", "kagzi", "worker", "app"] if python_m else ["app.py"]
    return subprocess.run(
        [find_binary(), "check", "--address", env.server.address, "-n", env.namespace, "--", sys.executable, *command],
        cwd=folder, capture_output=True, text=True, check=False, timeout=60,
        env={k: v for k, v in os.environ.items() if k != "KAGZI_CHECK"} | {"KAGZI_CONFIG": "off"})


@kagzi.workflow(name="job")
async def job(n: int) -> str:
    got = await kagzi.do("reserve", lambda: "r")
    return got + await kagzi.wait_signal("go", str)


def open_run(env):
    env.worker(job)
    run = env.client.start(job, 1)
    env.waits(run)
    env.stop_workers()
    return run


def test_check_passes_the_code_that_the_runs_were_started_with(kagzi_env, tmp_path):
    open_run(kagzi_env)
    (tmp_path / "app.py").write_text(textwrap.dedent(OLD))
    for python_m in (False, True):
        got = check(kagzi_env, tmp_path, python_m=python_m)
        assert got.returncode == 0, got.stdout + got.stderr
        assert got.stdout.splitlines()[-1] == (
            f"checked 1 open runs of 1 workflow types in namespace {kagzi_env.namespace}: 0 diverge, 0 came to no end")


@pytest.mark.parametrize(("old", "new", "said"), [
    ('"reserve"', '"book"', "at step reserve: expected step reserve, got step book"),
    ('await kagzi.do("reserve", lambda: "r")', '"r"',
     "at step reserve: expected step reserve, got nothing beyond wait for a signal go"),
    ('kagzi.do("reserve", lambda: "r")', 'kagzi.wait_signal("reserve", str)',
     "at step reserve: expected step reserve, got wait for a signal reserve"),
    ('return got + await kagzi.wait_signal("go", str)', "return got",
     "at step go: expected wait for a signal go, got the run completed with"),
    ("n: int", "n: bool", "a value that the code can read, got input of workflow type job: want true or false"),
    ("got = await", "import asyncio; await asyncio.sleep(1); got = await", "a run that the SDK accepts"),
])
def test_check_finds_runs_that_diverge(kagzi_env, tmp_path, old, new, said):
    run = open_run(kagzi_env)
    (tmp_path / "app.py").write_text(textwrap.dedent(OLD).replace(old, new))
    got = check(kagzi_env, tmp_path)
    assert got.returncode == 1, got.stdout + got.stderr
    assert f"run {run.id} of type job diverges" in got.stdout
    assert said in got.stdout
    assert "1 diverge, 0 came to no end" in got.stdout
    assert [s.name for s in run.steps()] == ["reserve", "go"]


def test_check_says_that_a_namespace_does_not_exist(kagzi_env, tmp_path):
    (tmp_path / "app.py").write_text(textwrap.dedent(OLD))
    kagzi_env.namespace = "misspelt"
    got = check(kagzi_env, tmp_path)
    assert got.returncode != 0
    assert "there is no namespace misspelt, so nothing was checked" in got.stderr


ran: list[str] = []


@kagzi.workflow
async def order(n: int) -> list[object]:
    async def one(i: int) -> object:
        return await kagzi.do(f"part-{i}", lambda: ran.append("part") or i)

    parts = await asyncio.gather(*(one(i) for i in range(n)))
    await kagzi.sleep("nap", 0.05)
    return [*parts, kagzi.patched("new"), kagzi.now().year > 2000, await kagzi.run_child("kid", kid, 2)]


@kagzi.workflow
async def kid(n: int) -> int:
    return n


@kagzi.workflow(name="order")
async def other_end(n: int) -> list[object]:
    return (await order.fn(n))[:-1]


@kagzi.workflow(name="order")
async def other_step(n: int) -> list[object]:
    await kagzi.do("more", lambda: ran.append("more"))
    return await order.fn(n)


def test_a_capsule_is_replayed_without_a_server(kagzi_env, tmp_path):
    kagzi_env.worker(order, kid)
    run = kagzi_env.client.start(order, 3)
    assert run.result(20)[:3] == [0, 1, 2]
    file = tmp_path / "order.kagzi"
    run.export(file)
    ran.clear()
    kagzi.replay_capsule(file, order)
    with pytest.raises(kagzi.Divergence, match="expected the run to have completed with .*got the run completed") as e:
        kagzi.replay_capsule(file, other_end)
    assert (e.value.run_id, e.value.workflow_type, e.value.step) == (run.id, "order", "")
    with pytest.raises(kagzi.Divergence, match="expected step part-0 in branch 1, got step more"):
        kagzi.replay_capsule(file, other_step)
    child = next(iter(kagzi_env.client.list(parent_run_id=run.id)))
    kagzi.replay_capsule(file, kid, run_id=child.run_id)
    assert not ran
    with pytest.raises(kagzi.ConfigError, match="has no run x"):
        kagzi.replay_capsule(file, order, run_id="x")
    with pytest.raises(kagzi.ConfigError, match="is not a capsule"):
        kagzi.replay_capsule(__file__, order)
    run.export(file, redact_payloads=True)
    with pytest.raises(kagzi.ConfigError, match="without payloads"):
        kagzi.replay_capsule(file, order)


@kagzi.workflow
async def fails() -> None:
    await kagzi.do("s", int)
    raise kagzi.Failed("declined", type="card")


@kagzi.workflow(name="fails")
async def passes() -> None:
    await kagzi.do("s", int)


def test_a_capsule_of_a_failed_run_is_replayed(kagzi_env, tmp_path):
    kagzi_env.worker(fails)
    run = kagzi_env.client.start(fails)
    run.wait(20)
    run.export(tmp_path / "x")
    kagzi.replay_capsule(tmp_path / "x", fails)
    with pytest.raises(kagzi.Divergence, match="expected the run to have failed: declined, got the run completed"):
        kagzi.replay_capsule(tmp_path / "x", passes)
