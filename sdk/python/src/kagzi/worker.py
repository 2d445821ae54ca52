"""Workers run workflows and steps."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Literal

from . import _code, _dev, _replay, codec as codecs
from ._calls import StepInfo, YoungSteps
from ._code import Pool, Watch, WorkflowCode, own_build
from ._convert import MAX_NAME, Duration, clean_text, printable, seconds, unix
from ._define import Workflow
from ._intercept import Interceptor
from ._parking import Cache
from ._run import Run
from ._session import PLATFORM, Session
from ._version import with_sdk
from ._wire import TLS, resolve
from .errors import ConfigError, KagziError, ServerError
from .v1 import common_pb2 as common, worker_pb2 as w

_PARTING = 5.0  # seconds for each of the last exchanges with the server
LOG_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"
_MAX_CACHE = 100_000  # as servers accept


class Worker:
    """Runs workflows for a server.

    Args:
        *workflows: The workflows that it serves, from ``@kagzi.workflow``.
        profile: Profile of kagzi.toml (KAGZI_PROFILE, else the file's default); ``off`` for none.
        address: Of the server, host:port, or of several, separated by commas (KAGZI_ADDRESS, else the profile's, else
            127.0.0.1:50051).
        namespace: (KAGZI_NAMESPACE, else the profile's, else ``default``.)
        queue: Main queue (that of the workflows, else ``default``).
        queues: Further queues, in order of preference.
        max_concurrent: Most runs that it holds at once (100).
        threads: Most step bodies that run in threads at once (max_concurrent).
        type_limits: Most RUNNING runs of a workflow type in the queue, over all workers.
        queue_limit: Most RUNNING runs in the queue, over all workers.
        worker_id: Letters, digits, ``-`` and ``_``, at most 64 (the server chooses one).
        hostname: Shown to operators (that of the operating system).
        version: Of the application.
        labels: Shown to operators, and matched by requirements of runs.
        capabilities: Matched by requirements of runs, like ``tool:jq`` with value ``1.7``.
        build_id: Names the workflow code: up to 128 printable ASCII characters (a hash of the
            modules of the program).
        on_divergence: ``pause``, ``fail`` or ``warn``: what to do when no build matches a run's history.
        removed_patches: Ids of ``kagzi.patched`` calls that are no longer in the code.
        drain_timeout: How long a stopping worker waits for its runs (300 s); 0 means not at all.
        handle_signals: Drain on SIGTERM and SIGINT; a second one releases the runs at once.
        log: Logger of the worker and of workflow code (``logging.getLogger("kagzi")``).
        codec: Transforms payloads.
        api_key: (KAGZI_API_KEY, the file of KAGZI_API_KEY_FILE, else the profile's.)
        tls: TLS settings, or True for the defaults (KAGZI_TLS…, else the profile's, else none).
        cache: Most parked runs whose code it keeps in memory, each for 10 minutes; 0 for none, at most 100,000 (1,000).
        cache_bytes: Most bytes of their payloads, and 16 KiB for each run (256 MiB).
        heartbeat: ``thread``, or ``process``: a small process beats while code in C keeps the interpreter to itself.
        interceptors: Wrap workflow functions and code of steps; the first is the outermost.
        always_suspend: For tests: give the run back at every result, so that each await is replayed.

    Raises:
        ConfigError: An option, the environment or the profile is invalid.
    """

    late_beat, look_after = _code.late_beat, _code.look_after
    log_failed_step, log_failed_run = _code.log_failed_step, _code.log_failed_run

    def __init__(self, *workflows: Workflow[Any, Any], profile: str = "", address: str = "", namespace: str = "",
                 queue: str = "", queues: Iterable[str] = (), max_concurrent: int = 100, threads: int = 0,
                 type_limits: Mapping[str, int] | None = None, queue_limit: int = 0, worker_id: str = "",
                 hostname: str = "", version: str = "", labels: Mapping[str, str] | None = None,
                 capabilities: Mapping[str, str] | None = None, build_id: str = "",
                 on_divergence: Literal["pause", "fail", "warn"] = "pause", removed_patches: Iterable[str] = (),
                 drain_timeout: Duration = 300.0, handle_signals: bool = True, log: logging.Logger | None = None,
                 codec: codecs.Codec | None = None, api_key: str = "", tls: TLS | bool | None = None,
                 cache: int = 1000, cache_bytes: int = 256 << 20, heartbeat: Literal["thread", "process"] = "thread",
                 interceptors: Iterable[Interceptor] = (),
                 always_suspend: bool = False) -> None:
        if not workflows:
            raise ConfigError("a worker needs at least one workflow: Worker(order)")
        self.codes: dict[str, WorkflowCode] = {}
        for one in workflows:
            if not isinstance(one, Workflow):
                raise ConfigError(f"{one!r:.100} is no workflow: decorate its function with @kagzi.workflow")
            if one.name in self.codes:
                raise ConfigError(f"workflow type {one.name} is given twice")
            self.codes[one.name] = WorkflowCode(one)
        named = sorted({one.queue for one in workflows if one.queue})
        others = [*queues, *(named if queue else named[1:])]
        self.queue = queue or (named[0] if named else "default")
        self.queues = list(dict.fromkeys(q for q in others if q != self.queue))
        for what, number in (("max_concurrent", max_concurrent), ("threads", threads or 1),
                             ("queue_limit", queue_limit or 1)):
            if not isinstance(number, int) or not 1 <= number < 1 << 31:
                raise ConfigError(f"{what} is {number!r}, want at least 1")
        for name, limit in (type_limits or {}).items():
            if name not in self.codes:
                raise ConfigError(f"type_limits names {name!r}, which is no workflow type of this worker; it has "
                                  + ", ".join(sorted(self.codes)))
            if limit < 1:
                raise ConfigError(f"type_limits[{name!r}] is {limit}, want at least 1")
        if heartbeat not in ("thread", "process"):
            raise ConfigError(f"heartbeat is {heartbeat!r}, want thread or process")
        if on_divergence not in ("pause", "fail", "warn"):
            raise ConfigError(f"on_divergence is {on_divergence!r}, want pause, fail or warn")
        if len(hostname.encode("utf-8", "replace")) > MAX_NAME:
            raise ConfigError(f"hostname has {len(hostname)} characters, want at most {MAX_NAME} bytes")
        self.log = log if log is not None else logging.getLogger("kagzi")
        self.endpoint = resolve(profile, address, namespace, api_key, tls)
        for warning in self.endpoint.warnings:
            self.log.warning("settings: %s", warning)
        self.max_concurrent, self.codec = max_concurrent, codec
        self.on_divergence, self.removed_patches = on_divergence, list(removed_patches)
        self.drain_timeout, self.handle_signals = seconds(drain_timeout, "drain_timeout"), handle_signals
        self.always_suspend, self.interceptors = always_suspend, list(interceptors)
        if not 0 <= cache <= _MAX_CACHE:
            raise ConfigError(f"cache is {cache}, want 0 to {_MAX_CACHE}")
        self.beats_apart = heartbeat == "process"
        self.reporter = _dev.Reporter(self) if os.environ.get("KAGZI_DEV") == "1" else None
        self.cache = Cache(self, 0 if always_suspend else cache, cache_bytes)
        self.build_id = build_id or own_build(workflows)
        self.hello = w.RegisterRequest(
            namespace=self.endpoint.namespace, task_queue=self.queue, task_queues=self.queues,
            workflow_types=sorted(self.codes), hostname=hostname or clean_text(socket.gethostname(), MAX_NAME),
            pid=os.getpid(), version=version, labels=labels, platform=PLATFORM,
            capabilities=with_sdk(dict(capabilities or {})), max_concurrent=max_concurrent, pauses_runs=True,
            instance_id=str(uuid.uuid4()), build_id=self.build_id, worker_id=worker_id, keeps_runs=self.cache.limit,
            takes_batches=True, queue_concurrency_limit=queue_limit or None)
        for name in sorted(type_limits or {}):
            self.hello.workflow_type_concurrency.add(workflow_type=name, max_concurrent=(type_limits or {})[name])

        self.watch = Watch()
        self.replaced: dict[str, Callable[..., Any]] = {}
        self.steps_running: dict[StepInfo, None] = {}
        self.steps_ended: deque[tuple[str, float]] = deque(maxlen=32)  # names, and the monotonic times of their ends
        self.runs: dict[str, Run] = {}
        self.pool = Pool(threads or max_concurrent)
        self.loop: asyncio.AbstractEventLoop
        self.young: YoungSteps
        self.session: Session
        self.ready = threading.Event()
        self._begun = self.draining = False
        self._signals = 0

    @property
    def id(self) -> str:
        """The worker's id; empty before the first registration."""
        return self.session.worker_id if self._begun else ""

    def run(self) -> None:
        """Registers the worker and runs workflows until a signal, or until an operator drains it.

        With the argument ``-kagzi-check``, which the SDK removes when it is imported, or with KAGZI_CHECK=1 in the
        environment, it runs no step but replays the open runs of its types, as ``kagzi check`` wants it.

        Raises:
            SystemExit: A checked run diverges (code 1).
            ServerError: The server refuses the worker.
            KagziError: Runs were released unfinished.
        """
        if os.environ.get(_replay.CHECK_VARIABLE) == "1":
            if not _replay.check(self):
                sys.exit(1)
            return
        asyncio.run(self.serve())

    async def serve(self) -> None:
        """Is run for a program with an event loop of its own. Cancelling it drains the worker."""
        if self._begun:
            raise ConfigError("the worker has run already: make a new one")
        self.loop = asyncio.get_running_loop()
        self.young = YoungSteps(self.loop)
        self._emptied, self._served, self._asked = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._again = asyncio.Event()
        self.watch.thread = threading.get_ident()
        self.session = Session(self, self._deliver)
        self._begun = True
        handled = self._catch_signals()
        failure: KagziError | None = None
        self.session.start()
        try:
            await _first(self._served.wait(), self._asked.wait())
        except asyncio.CancelledError:
            failure = await asyncio.shield(self._drain())
            raise
        else:
            if not self._served.is_set():
                failure = await self._drain()
        finally:
            for number in handled:
                self.loop.remove_signal_handler(number)
            await self._close()
        if self.session.refused is not None:
            raise self._advised(self.session.refused)
        if failure is not None:
            raise failure

    def stop(self) -> None:
        """Asks a worker that serves to drain and end; may be called by any thread."""
        self.loop.call_soon_threadsafe(self._ask_end)

    # Events of the connection: each has a method by its name.

    def _deliver(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self._take)
        except RuntimeError:
            pass  # the loop is closed

    def _take(self) -> None:
        events = self.session.take()
        while events:
            kind, what = events.popleft()
            try:
                getattr(self, "_on_" + kind)(what)
            except Exception:
                self.log.exception("cannot handle an event of the server: %s", kind)

    def _on_answer(self, what: Any) -> None:
        op, r = what
        op.run.answered(op, r)

    def _on_task(self, task: w.Task) -> None:
        old = self.runs.get(task.run_id)
        if old is None:
            self._begin(task)
        elif task.lease_token in (old.task.lease_token, old.next.lease_token if old.next is not None else ""):
            self.session.add_credit()
        elif old.leaving is not None and old.leaving.parks:  # it has overtaken the answer
            if old.next is not None:
                self.session.add_credit()
            old.next, old.next_pauses = task, False
        else:
            old.lose(common.ErrorDetail(message="claimed again by this worker"))
            self._begin(task)

    def _begin(self, task: w.Task) -> None:
        kept = self.cache.take(task.run_id)
        if kept is not None:
            self.runs[task.run_id] = kept
            if not self.draining and kept.resume(task):
                return
            self.log.debug("the code of run %s in memory does not fit what happened meanwhile", task.run_id)
            kept.over("suspended")
        code = self.codes.get(task.workflow_type)
        run = self.runs[task.run_id] = Run(self, task, code)  # type: ignore[arg-type]
        if self.draining:
            run.give_back()
        elif code is None:
            self.log.error("no workflow for type %s; releasing run %s", printable(task.workflow_type), task.run_id)
            run.give_back()
        elif task.next_history_token or task.base:
            self.session.load_history(run)
        else:
            run.begin(task.history)

    def _expected(self, m: Any) -> Run | None:
        """Returns the run whose next lease a message is about."""
        run = self.runs.get(m.run_id)
        return run if run is not None and run.next is not None and run.next.lease_token == m.lease_token else None

    def _lose_next(self, run: Run) -> None:
        assert run.next is not None
        self.session.forget_task(run.next)
        run.next = None

    def _on_history(self, what: Any) -> None:
        run, steps = what
        if not run.ended and not run.quitted:
            run.begin(steps)

    def _on_unreadable(self, what: Any) -> None:
        run, error = what
        self.log.error("cannot load the history of run %s; releasing it: %s", run.task.run_id, error)
        run.give_back()

    def _held(self, m: Any) -> Run | None:
        run = self.runs.get(m.run_id)
        return run if run is not None and run.task.lease_token == m.lease_token else None

    def _on_cancel_task(self, c: w.CancelTask) -> None:
        run, coming = self._held(c), self._expected(c)
        if coming is not None and coming.next is not None:
            if c.HasField("grace_until"):
                coming.next.cancel_requested = True
                coming.next.cancel_grace_until.CopyFrom(c.grace_until)
            else:
                self._lose_next(coming)
        if run is None:
            return
        if not c.HasField("grace_until"):
            if not run.closing:
                run.lose(c.reason)
        elif run.ask_cancel(unix(c.grace_until)):
            self.log.info("run %s is being cancelled; its code may clean up: %s", c.run_id, printable(c.reason.message))

    def _on_pause_task(self, p: w.PauseTask) -> None:
        run, coming = self._held(p), self._expected(p)
        if coming is not None:
            coming.next_pauses = not p.taken_back
        if run is None:
            return
        if p.taken_back:
            run.go_on()
        elif run.ask_pause():
            self.log.info("run %s is being paused; its running steps finish first", p.run_id)

    def _on_wait_over(self, m: w.WaitOver) -> None:
        run = self._held(m)
        if run is not None:
            run.hint(m.step_name)

    def _on_lost(self, lease: w.Lease) -> None:
        run, coming = self._held(lease), self._expected(lease)
        if coming is not None:
            self._lose_next(coming)
        if run is not None and not run.closing and run.leaving is None:  # else the answer says how the lease ended
            run.lose(common.ErrorDetail(message="not renewed by the server"))

    def _on_renewed(self, _: None) -> None:
        for run in list(self.runs.values()):
            if run.bodies:
                run.start_bodies()

    def _on_expired(self, silent: float) -> None:
        for run in list(self.runs.values()):
            if not run.quitted and silent >= run.heartbeat_timeout:
                self.log.warning("no contact with the server for %.0f s, longer than the lease; giving up run %s",
                                 silent, run.task.run_id)
                run.give_back()

    def _on_note_lost(self, note: w.SetNote) -> None:
        run = self._held(note)
        if run is not None and run._note is None:  # else there is a newer one
            run.note(note.note)

    def _on_ready(self, _: None) -> None:
        for run in list(self.runs.values()):
            if run.ops:
                run.again = run.issued
            run.go_on()  # the new session tells again which runs are to be paused
        self.ready.set()

    def _on_stopped(self, _: None) -> None:
        self._served.set()

    def _on_drain(self, _: Any) -> None:
        if not self._asked.is_set():
            self.log.info("asked by the server to drain")
        self._asked.set()

    def forget(self, run: Run, *, keep: bool = False) -> None:
        """Drops a run that is no longer held, or keeps its code in memory. Its next lease may have begun."""
        coming, run.next = run.next, None
        if self.runs.get(run.task.run_id) is run:
            del self.runs[run.task.run_id]
        self.session.forget(run)
        if keep:
            self.cache.put(run)
        if coming is not None:
            self._begin(coming)
            now = self.runs.get(coming.run_id)
            if run.next_pauses and now is not None:
                now.ask_pause()
        if self.draining and not self.runs:
            self._emptied.set()

    # The end.

    def _catch_signals(self) -> list[int]:
        handled: list[int] = []
        if self.handle_signals and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                try:
                    self.loop.add_signal_handler(number, self._ask_end)
                    handled.append(number)
                except (NotImplementedError, RuntimeError):
                    pass  # not on this platform
        return handled

    def _ask_end(self) -> None:
        self._signals += 1
        self._asked.set()
        if self._signals > 1:
            self._again.set()

    async def _drain(self) -> KagziError | None:
        self.draining = True
        self.cache.clear()
        self.log.info("worker %s draining%s: %d active runs", self.id,
                      "; another signal releases them at once" if self.handle_signals and self.runs else "",
                      len(self.runs))
        self.session.drain()
        failure = None
        if self.runs:
            self._emptied.clear()
            waits = [self._emptied.wait(), self._served.wait(), self._again.wait()]
            await _first(*waits, timeout=max(self.drain_timeout, 0.0))
            active = sorted(self.runs)
            if active:
                self.log.warning("releasing unfinished runs to other workers: %s", ", ".join(active))
                failure = KagziError(f"released {len(active)} unfinished runs")
                for run in list(self.runs.values()):
                    run.give_back()
                if self.runs:
                    await _first(self._emptied.wait(), self._served.wait(), timeout=_PARTING)
        await self.loop.run_in_executor(None, self.session.part, _PARTING)
        return failure

    async def _close(self) -> None:
        for run in list(self.runs.values()):
            run.over("released")
            run.drop()
        self.cache.clear()
        await self.loop.run_in_executor(None, self.session.stop)
        tasks = [info.task for info in self.steps_running if info.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=_PARTING)
        until = time.monotonic() + _PARTING
        while self.steps_running and time.monotonic() < until:
            await asyncio.sleep(0.02)
        if self.steps_running:
            self.log.warning("code of steps still runs; the worker ends without it: %s",
                             ", ".join(sorted(i.name for i in self.steps_running)))
        self.pool.close()

    def _advised(self, e: ServerError) -> ServerError:
        advice = ""
        if e.code == "CONFLICT" and self.hello.worker_id:
            advice = (f"another worker has the id {self.hello.worker_id}; that of a killed worker is free once it "
                      f"counts as lost, or after `kagzi worker offline {self.hello.worker_id}`")
        elif e.code == "UNAUTHORIZED" and not self.endpoint.api_key:
            advice = "the worker has no API key: set api_key, KAGZI_API_KEY_FILE, or api-key-file in the profile"
        elif e.code == "UNAUTHORIZED":
            advice = "its API key is unknown, expired or revoked, or lacks the permission"
        return type(e)(f"the server refused the worker: {e.message}" + (f" ({advice})" if advice else ""), e.code,
                       subject=e.subject, subject_id=e.subject_id, metadata=e.metadata, status=e.status)


async def _first(*waits: Coroutine[Any, Any, Any], timeout: float | None = None) -> None:
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def serve(*workflows: Workflow[Any, Any], **options: Any) -> None:
    """Makes a Worker with the options and runs it: ``kagzi.serve(order)``.

    If the program has set up no logging, the lines of the logger ``kagzi`` go to stderr, from INFO on.
    """
    log = logging.getLogger("kagzi")
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(LOG_FORMAT))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    Worker(*workflows, **options).run()
