"""Tests of workflows on the real server, and a pytest plugin with the fixtures ``kagzi_server`` and ``kagzi_env``.

Example::

    def test_order(kagzi_env):
        kagzi_env.replace("charge", lambda *_: "test-charge")
        assert kagzi_env.run(order, Order("7", ["book"]), always_suspend=True).charge == "test-charge"

The server's binary is the one in KAGZI_BIN; else ``kagzi`` in the repository that holds this package, or on the PATH;
else it is built once with Go from that repository.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ._blocking import Client, Run
from ._convert import Duration, seconds
from ._define import Workflow
from ._dev import Reporter
from .errors import ConfigError, KagziError
from .policy import StartOptions
from .worker import Worker

In = TypeVar("In")
Out = TypeVar("Out")


def repository() -> Path | None:
    """Returns the Kagzi repository that holds this package; None if it was installed elsewhere."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "go.mod").exists() and (folder / "proto" / "kagzi").is_dir():
            return folder
    return None


def find_binary() -> str:
    """Returns the path of the server's binary, which is built if need be.

    Raises:
        ConfigError: There is none, and it cannot be built.
    """
    named = os.environ.get("KAGZI_BIN", "")
    if named:
        if not os.access(named, os.X_OK):
            raise ConfigError(f"KAGZI_BIN is {named!r}, which is no program")
        return named
    root = repository()
    if root is not None and os.access(root / "kagzi", os.X_OK) and (root / "kagzi").is_file():
        return str(root / "kagzi")
    found = shutil.which("kagzi")
    if root is None or shutil.which("go") is None:
        if found:
            return found
        raise ConfigError("no kagzi server to test on: set KAGZI_BIN to its binary")
    built = Path(tempfile.gettempdir()) / f"kagzi-test-{os.getuid() if hasattr(os, 'getuid') else 0}" / "kagzi"
    built.parent.mkdir(mode=0o700, exist_ok=True)
    subprocess.run(["go", "build", "-trimpath", "-o", str(built), "."], cwd=root, check=True,
                   env={**os.environ, "CGO_ENABLED": "0"})
    return str(built)


class Server:
    """A private server on a free port, with a database of its own.

    Args:
        folder: Folder of the database (a temporary one).
        lease: Seconds that it keeps runs of a silent worker (3).
        address: To listen on, for a server that comes back (a free port).
        database: Address of the database, as of ``kagzi server --db`` (a file in the folder).
        options: Further options of ``kagzi server``.
        clock: Its clock can be set ahead, and nothing but the clock ends a lease: it does not notice dead workers.
    """

    def __init__(self, folder: str | None = None, *, lease: float = 3.0, address: str = "127.0.0.1:0",
                 database: str = "", clock: bool = False, options: Sequence[str] = ()) -> None:
        self._own = tempfile.mkdtemp(prefix="kagzi-") if folder is None else ""
        self.folder = folder or self._own
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KAGZI_")}
        if clock:
            environment["KAGZI_TEST_CLOCK"] = "1"
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            [find_binary(), "server", "--config", "off", "--data-dir", self.folder, "--listen", address, "--http",
             "off", "--log-level", "warn", "--auto-namespaces", "--worker-lease", f"{lease}s",
             "--heartbeat-interval", f"{lease / 3:.3f}s", *(["--db", database] if database else []),
             *options],
            stdin=subprocess.PIPE if clock else subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self._log, text=True, env=environment)
        self.address, self._passing = "", threading.Lock()
        assert self.process.stdout is not None
        for line in self.process.stdout:
            words = line.split()
            if len(words) == 2 and words[0] == "address":
                self.address = words[1]
            if words[:1] == ["next"]:
                break
        if not self.address:
            self._log.seek(0)
            raise KagziError(f"the server did not start: {self._log.read()[-2000:]}")

    def pass_time(self, d: Duration = 0.0) -> datetime:
        """Sets the clock ahead by a time, in seconds or as a timedelta, and returns the server's time.

        Raises:
            KagziError: The server has no such clock, or the clock would go backwards or by more than 100 years.
        """
        if self.process.stdin is None or self.process.stdout is None:
            raise KagziError("this server has no clock of tests: Server(clock=True)")
        with self._passing:
            self.process.stdin.write(f"pass {seconds(d, 'time')}s\n")
            self.process.stdin.flush()
            kind, _, said = self.process.stdout.readline().strip().partition(" ")
        if kind != "now":
            raise KagziError(said or "the server has ended")
        return datetime.fromisoformat(said)

    def stop(self, *, kill: bool = False) -> None:
        """Ends the server; with kill at once, as a crash would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        self.process.wait(30)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def close(self) -> None:
        """Ends the server and deletes its temporary folder."""
        self.stop()
        self._log.close()
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)


class Env:
    """A namespace of its own on a server, with a client, and workers in threads of this process."""

    def __init__(self, server: Server) -> None:
        self.server, self.namespace = server, f"t-{uuid.uuid4().hex[:12]}"
        self.client = Client(profile="off", address=server.address, namespace=self.namespace)
        self._workers: list[tuple[Worker, threading.Thread, list[BaseException]]] = []
        self._replaced: dict[str, Callable[..., Any]] = {}

    def replace(self, name: str, fn: Callable[..., Any]) -> None:
        """Makes every step with a name run other code, which gets no arguments it does not want.

        Args:
            name: As written in the workflow, without the number of a repeat.
            fn: Sync or async, called with the step's arguments.
        """
        self._replaced[name] = fn
        for worker, _, _ in self._workers:
            worker.replaced[name] = fn

    def worker(self, *workflows: Workflow[Any, Any], **options: Any) -> Worker:
        """Starts a worker in a thread and returns it when it is registered; options are those of Worker."""
        worker = Worker(*workflows, profile="off", address=self.server.address, namespace=self.namespace,
                        handle_signals=False, **{"drain_timeout": 5.0, **options})
        worker.replaced.update(self._replaced)
        worker.reporter = Reporter(worker)
        failures: list[BaseException] = []

        def run() -> None:
            try:
                worker.run()
            except BaseException as e:
                failures.append(e)

        thread = threading.Thread(target=run, name="kagzi-worker", daemon=True)
        thread.start()
        while not worker.ready.wait(0.05):
            if not thread.is_alive():
                raise failures[0] if failures else KagziError("the worker ended")
        self._workers.append((worker, thread, failures))
        return worker

    def run(self, workflow: Workflow[In, Out], input: Any = None, *, timeout: Duration = 30.0,
            always_suspend: bool = False, **o: Any) -> Out:
        """Runs a workflow to its end and returns its result; starts a worker if there is none. Time jumps: see result.

        Args:
            workflow: The workflow.
            input: Its input.
            timeout: Longest wait, in seconds.
            always_suspend: Give the run back at every result, so that each await is replayed.
            **o: Options of the start.
        """
        return self.result(self.start(workflow, input, always_suspend=always_suspend, **o), timeout)

    def result(self, run: Run[Out], timeout: Duration = 30.0) -> Out:
        """Returns the result of a run. While all open runs of the namespace wait, time jumps to what comes first.

        So a sleep of 30 days takes milliseconds. Times within the worker, such as the timeout of a step, do not jump.

        Raises:
            TimeoutError: It has not ended within timeout seconds; the text says what it waits for.
            RunError: It ended without a result.
        """
        end = time.monotonic() + seconds(timeout, "timeout")
        while True:
            try:
                return run.result(0.01)
            except TimeoutError:
                if time.monotonic() > end:
                    raise TimeoutError(f"run {run.id} has not ended: {run.explain().summary}") from None
            self.jump()

    def jump(self) -> bool:
        """Lets time jump to what comes first, if all open runs of the namespace wait for a time or a signal.

        Returns:
            False if one of them does not wait, or none waits for a time.
        """
        now, times = self.pass_time(), []
        for d in self.client.list(["PENDING", "RUNNING", "SLEEPING"], page_size=1000):
            due = [t for t in (d.wake_up_at, d.deadline) if t is not None]
            if d.status == "RUNNING" or (d.status == "PENDING" and not due) or (due and min(due) <= now):
                return False
            times += due
        if times:
            self.pass_time(min(times) - now)
        return bool(times)

    def pass_time(self, d: Duration = 0.0) -> datetime:
        """Sets the server's clock ahead by a time, in seconds or as a timedelta, and returns the server's time."""
        return self.server.pass_time(d)

    def start(self, workflow: Workflow[In, Out], input: Any = None, *, always_suspend: bool = False,
              **o: Any) -> Run[Out]:
        """Starts a run, and a worker for it if there is none."""
        if not any(workflow.name in w.codes and w.always_suspend == always_suspend for w, _, _ in self._workers):
            self.stop_workers()
            self.worker(workflow, always_suspend=always_suspend)
        options: StartOptions = {**o}  # type: ignore[typeddict-item]
        return self.client.start(workflow, input, **options)

    def until(self, holds: Callable[[], Any], timeout: float = 15.0) -> Any:
        """Waits until a condition holds, and returns its value.

        Raises:
            AssertionError: It does not hold in time.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            value = holds()
            if value:
                return value
            time.sleep(0.01)
        raise AssertionError(f"it does not hold after {timeout:g} s: {holds}")

    def waits(self, run: Run[Any], timeout: float = 15.0) -> None:
        """Waits until a run holds no worker, because it waits for something."""
        self.until(lambda: run.get().status == "SLEEPING", timeout)

    def stop_workers(self) -> None:
        """Stops the workers; they drain.

        Raises:
            BaseException: What a worker ended with.
        """
        workers, self._workers = self._workers, []
        for worker, thread, _ in workers:
            if thread.is_alive():
                worker.stop()
        for _, thread, failures in workers:
            thread.join(30)
            if failures and not isinstance(failures[0], KagziError):
                raise failures[0]

    def close(self) -> None:
        """Stops the workers and closes the client."""
        try:
            self.stop_workers()
        finally:
            self.client.close()


try:
    import pytest
except ImportError:
    pass
else:
    @pytest.fixture(scope="session")
    def kagzi_server() -> Iterator[Server]:
        """A server for all tests of the session. Its time jumps."""
        server = Server(clock=True)
        yield server
        server.close()

    @pytest.fixture
    def kagzi_env(kagzi_server: Server) -> Iterator[Env]:
        """An Env of its own for each test."""
        env = Env(kagzi_server)
        yield env
        env.close()
