"""Workers as processes: kill -9, SIGTERM, reload, a server that comes back, and refusals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import kagzi
from kagzi.testing import Env, Server

PROGRAM = '''
import os, sys, time
from pathlib import Path
import kagzi

marks = Path(os.environ["MARKS"])

@kagzi.step
def mark(name: str) -> str:
    with open(marks, "a") as f:
        f.write(f"{name} {kagzi.attempt()}\\n")
    return name

@kagzi.step
def hang() -> str:
    mark.fn("hang")
    if kagzi.attempt() == 1:
        time.sleep(60)
    return "hung"

@kagzi.workflow
async def job() -> list[str]:
    return [await mark("VERSION"), await hang()]

mark.fn("loaded VERSION")
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(PROGRAM.replace("VERSION", "one"))
    return tmp_path


def begin(env: Env, folder: Path, *more: str) -> subprocess.Popen[str]:
    return spawn(env, folder, "-m", "kagzi", "worker", "app:job", *more)


def spawn(env: Env, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Runs Python."""
    environment = {**os.environ, "KAGZI_ADDRESS": env.server.address, "KAGZI_NAMESPACE": env.namespace,
                   "KAGZI_CONFIG": "off", "MARKS": str(folder / "marks")}
    return subprocess.Popen([sys.executable, *arguments], cwd=folder, env=environment, stderr=subprocess.PIPE,
                            text=True)


def marks(folder: Path) -> list[str]:
    file = folder / "marks"
    return file.read_text().splitlines() if file.exists() else []


def end(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> str:
    process.send_signal(number)
    return process.communicate(timeout=20)[1]


def test_a_run_survives_kill_9_of_its_worker(leases, folder):
    first = begin(leases, folder)
    run = leases.client.start("job")
    leases.until(lambda: any(s.name == "hang" for s in run.steps()))  # announced after 250 ms
    end(first)
    second = begin(leases, folder)
    assert run.result(40) == ["one", "hung"]
    assert [m for m in marks(folder) if "loaded" not in m] == ["one 1", "hang 1", "hang 2"]
    text = end(second, signal.SIGTERM)
    assert "draining" in text
    assert "deregistered" in text
    assert second.returncode == 0


def test_a_second_signal_releases_the_runs(leases, folder):
    worker = begin(leases, folder)
    run = leases.client.start("job")
    leases.until(lambda: any(s.name == "hang" for s in run.steps()))
    worker.send_signal(signal.SIGTERM)
    said = []
    while not said or "draining" not in said[-1]:
        said.append(worker.stderr.readline())
    text = end(worker, signal.SIGTERM)
    assert f"releasing unfinished runs to other workers: {run.id}" in text
    assert worker.returncode == 1
    other = begin(leases, folder)
    assert run.result(30) == ["one", "hung"]
    end(other)


def test_a_changed_file_starts_the_worker_again(leases, folder):
    worker = begin(leases, folder, "--reload")
    leases.client.start("job")
    leases.until(lambda: "hang 1" in marks(folder))  # it holds a run, which it gives back
    (folder / "app.py").write_text(PROGRAM.replace("VERSION", "two"))
    leases.until(lambda: "loaded two 0" in marks(folder), 30)
    text = end(worker, signal.SIGTERM)
    assert "app.py has changed" in text


SERVED = '''
import kagzi

@kagzi.workflow
async def odd(how: str) -> None:
    def sync() -> None:
        raise ValueError("\\x1b[31mred")

    async def on_the_loop() -> None:
        sync()

    await kagzi.do("boom", on_the_loop if how == "async" else sync, retry=kagzi.Retry(attempts=1))

kagzi.serve(odd)
'''


def test_serve_logs_what_the_application_did(leases, tmp_path):
    """No logging is set up. Stacks begin at code of the application, and texts cannot steer the terminal."""
    (tmp_path / "served.py").write_text(SERVED)
    worker = spawn(leases, tmp_path, "served.py")
    runs = [leases.client.start("odd", how) for how in ("sync", "async")]
    assert [r.wait(30).status for r in runs] == ["FAILED"] * 2
    text = end(worker, signal.SIGTERM)
    assert re.search(r"INFO +worker \S+ registered", text)
    assert text.count("\\x1b[31mred") == 2 * 4  # the line of the step, two of its stack, the line of the run
    assert "\x1b" not in text
    files = re.findall(r'File "(.*?)"', text)
    assert {Path(file).name for file in files} == {"served.py"}


@pytest.mark.parametrize(("target", "text"), [
    ("nowhere", "there is no module 'nowhere'"), ("app:nothing", "module app has no 'nothing'"),
    ("app:marks", "neither a workflow nor a worker"), ("json", "there is no workflow in json")])
def test_a_target_that_is_none_is_said(folder, target, text):
    got = subprocess.run([sys.executable, "-m", "kagzi", "worker", target], cwd=folder, capture_output=True, text=True,
                         check=False, env={**os.environ, "MARKS": "x"}, timeout=30)
    assert got.returncode == 1
    assert text in got.stderr


@kagzi.workflow
async def steps(n: int) -> int:
    for i in range(n):
        await kagzi.do("s", lambda i=i: i)
    await kagzi.sleep("pause", 0.3)
    return n


def test_a_server_that_comes_back_loses_nothing(tmp_path):
    server = Server(str(tmp_path))
    env = Env(server)
    try:
        env.worker(steps)
        runs = [env.client.start(steps, 5) for _ in range(20)]
        server.stop(kill=True)
        again = Server(str(tmp_path), address=server.address)
        try:
            assert [r.result(60) for r in runs] == [5] * 20
            for r in runs:
                assert [s.settled for s in r.steps()] == [1, 2, 3, 4, 5, 6]
            env.stop_workers()
        finally:
            again.stop()
    finally:
        env.client.close()
        server.close()


def test_refusals_of_the_worker_say_what_to_do(leases):
    leases.worker(steps, worker_id="w-1")
    with pytest.raises(kagzi.Conflict, match="another worker has the id w-1"):
        kagzi.Worker(steps, profile="off", address=leases.server.address, namespace=leases.namespace,
                     worker_id="w-1", handle_signals=False).run()
    with pytest.raises(kagzi.InvalidArgument, match="worker_id"):
        kagzi.Worker(steps, profile="off", address=leases.server.address, worker_id="no spaces",
                     handle_signals=False).run()


gate = threading.Event()


@kagzi.workflow
async def holds() -> str:
    return await kagzi.do("s", lambda: "free" if gate.wait(20) else "late")


def test_a_draining_worker_finishes_what_it_holds(leases):
    gate.clear()
    worker = leases.worker(holds, drain_timeout=20)
    run = leases.client.start(holds)
    leases.until(lambda: worker.steps_running)
    threading.Timer(0.2, gate.set).start()
    leases.stop_workers()
    assert run.get().status == "COMPLETED"
    assert run.result(5) == "free"


def test_a_step_that_keeps_the_interpreter_is_named_by_the_late_beat(leases, tmp_path):
    (tmp_path / "app.py").write_text(textwrap.dedent('''
        import ctypes, kagzi
        @kagzi.step
        def greedy() -> int:
            return ctypes.PyDLL(None).sleep(2)  # keeps the interpreter's lock, as a regular expression may
        @kagzi.workflow
        async def job() -> int:
            return await greedy()
    '''))
    worker = begin(leases, tmp_path)
    run = leases.client.start("job")
    assert run.result(60) == 0
    for line in worker.stderr:  # the thread of the connection may come later than the result
        if "running steps: greedy" in line:
            break
    end(worker, signal.SIGTERM)


def test_a_late_beat_names_steps_that_ended_meanwhile(caplog):
    """The worker's thread may take note of the end before the connection's thread can beat."""
    worker = kagzi.Worker(steps, profile="off")
    worker.session = SimpleNamespace(lease=3.0)
    now = time.monotonic()
    worker.steps_ended.extend([("before", now - 60), ("greedy", now)])
    worker.late_beat(2.0)
    assert "a heartbeat came 2.0 s late" in caplog.text
    assert "running steps: greedy." in caplog.text


KEEPS = '''
    import ctypes, os, kagzi
    from pathlib import Path
    marks = Path(os.environ["MARKS"])
    @kagzi.step
    def greedy() -> int:
        with marks.open("a") as f:
            f.write("x")
        if marks.stat().st_size == 1:
            child = job.session.child
            assert child is None or child.ready.wait(30)
            ctypes.PyDLL(None).sleep(9)  # three times the lease
        return marks.stat().st_size
    @kagzi.workflow
    async def keeps() -> int:
        return await greedy()
    job = kagzi.Worker(keeps, heartbeat="HOW")
'''


@pytest.mark.parametrize(("how", "times"), [("process", 1), ("thread", 2)])
def test_a_process_of_its_own_beats_while_code_keeps_the_interpreter(leases, tmp_path, how, times):
    (tmp_path / "app.py").write_text(textwrap.dedent(KEEPS.replace("HOW", how)))
    worker = begin(leases, tmp_path)
    run = leases.client.start("keeps")
    assert run.result(60) == times  # with a thread the lease ends, and the run comes back
    end(worker)


def test_the_process_that_beats_ends_with_its_worker(leases, tmp_path):
    (tmp_path / "app.py").write_text(textwrap.dedent(KEEPS.replace("HOW", "process")))
    worker = begin(leases, tmp_path)
    beats = leases.until(lambda: [int(c) for t in Path(f"/proc/{worker.pid}/task").iterdir()
                                  for c in (t / "children").read_text().split()], 30)
    end(worker)
    leases.until(lambda: not Path(f"/proc/{beats[0]}/cmdline").exists()
                 or b"_outbox" not in Path(f"/proc/{beats[0]}/cmdline").read_bytes(), 30)


def test_a_worker_names_its_sdk_among_its_capabilities():
    from kagzi._version import with_sdk

    assert with_sdk({"gpu": "a100"}) == {"gpu": "a100", "sdk:python": kagzi.__version__}
    full = {str(i): "" for i in range(1024)}
    assert with_sdk(full) == full
