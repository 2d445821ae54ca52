"""The worker's connection: a thread of its own, so that code which computes or blocks does not stop heartbeats.

It carries one stream, on which operations of runs are pipelined. It keeps every operation until the server has answered
it for good: a new stream sends the unanswered ones again, in order, after a heartbeat that names all runs.
"""

from __future__ import annotations

import asyncio
import platform
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import grpc

from . import _outbox
from ._contract import METHODS
from ._outbox import FATAL, Op
from ._wire import dial, metadata
from .errors import ServerError, call_error, detail_error, repeatable
from .v1 import common_pb2 as common, worker_pb2 as w, workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run
    from .worker import Worker

_EOF: Any = getattr(grpc.aio, "EOF")  # noqa: B009  stubs do not know it
_HELLO_TIMEOUT = 15.0


class _Broken(Exception):
    """The stream ended; the connection is made again."""


class _Refused(Exception):
    """The server refuses the worker, which a repeat cannot change."""

    def __init__(self, error: ServerError) -> None:
        super().__init__(str(error))
        self.error = error


class Session:
    """The connection of a worker. It calls deliver, in its thread, when there are events to take, once for many."""

    def __init__(self, worker: Worker, deliver: Callable[[], None]) -> None:
        self.worker, self._deliver, self.endpoint, self.log = worker, deliver, worker.endpoint, worker.log
        self.worker_id = ""
        self.keeps_order, self.resumes_runs, self._takes_batches = True, False, False
        self.lease = 30.0
        self.interval = 10.0
        self.held: dict[str, str] = {}  # lease tokens by run id
        self.child: _outbox.Child | None = None  # a process that beats, too
        self.refused: ServerError | None = None
        self.draining = self.parting = self.stopped = False

        self._events: deque[tuple[str, Any]] = deque()
        self._delivering = False
        self._posted: deque[Op | Callable[[], Any]] = deque()
        self._poked = False
        self._counts = [0, 0, 0, 0.0]  # completed, failed, runs, seconds
        self._lock = threading.Lock()
        self._started_at = time.monotonic()
        self._cpu = (time.monotonic(), time.process_time())

        self._epoch = self._streams = self._seq = self._tasks = 0
        self._queue: deque[Op] = deque()
        self._urgent: deque[Op] = deque()
        self._registered, self._own_id = False, ""
        self._outboxes: dict[Run, dict[int, Op]] = {}
        self._repeats: dict[Run, int] = {}
        self._sent: dict[int, Op] = {}
        self._withdrawn: dict[Run, set[Op]] = {}  # whose answers are still to come
        self._credit = 0
        self.confirmed = (0.0, 0.0)  # monotonic and wall time of the last confirmed heartbeat
        self.contact = (time.monotonic(), time.time())
        self._given_up = 0.0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="kagzi-connection",
                                        daemon=True)
        self._ready = threading.Event()
        self._parted = threading.Event()

    # Called by the worker, in its thread.

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def post(self, op: Op) -> None:
        """Sends an operation as soon as possible."""
        self._command(op)

    def _command(self, what: Op | Callable[[], Any]) -> None:
        """Sends an operation, or runs an act in the thread of the connection."""
        self._posted.append(what)
        if not self._poked:
            self._poked = True
            try:
                self._loop.call_soon_threadsafe(self._take_posted)
            except RuntimeError:
                pass  # the thread has ended

    def withdraw(self, op: Op) -> None:
        """Forgets an operation that need not be answered any more; what follows it waits for its answer."""
        def withdrawn() -> None:
            assert op.run is not None
            self._outboxes.get(op.run, {}).pop(op.index, None)
            op.unknown = 0
            if self._epoch and self._sent.get(op.msg.seq) is op:
                self._withdrawn.setdefault(op.run, set()).add(op)

        self._command(withdrawn)

    def forget(self, run: Run) -> None:
        """Forgets a run that is no longer held, and lets the server send another."""
        self._drop_lease(run.task)
        self._command(lambda: self._forgotten(run))

    def forget_task(self, task: w.Task) -> None:
        """Forgets a run that was never begun, and lets the server send another."""
        self._drop_lease(task)
        self.add_credit()

    def _drop_lease(self, task: w.Task) -> None:
        if self.held.get(task.run_id) == task.lease_token:
            del self.held[task.run_id]

    def add_credit(self) -> None:
        """Lets the server send one more run."""
        self._command(self._one_more)

    def count(self, status: int, took: float) -> None:
        with self._lock:
            self._counts[0] += status == f.WORKFLOW_STATUS_COMPLETED
            self._counts[1] += status == f.WORKFLOW_STATUS_FAILED
            self._counts[2] += 1
            self._counts[3] += took

    def drain(self) -> None:
        """Tells the server that the worker takes no more runs."""
        self.draining = True
        self._command(lambda: self._goodbye(True))

    def part(self, timeout: float) -> bool:
        """Reports the last figures and deregisters; false if the server did not confirm it in time."""
        self._command(self._part)
        return self._parted.wait(timeout)

    def stop(self) -> None:
        self.stopped = True
        self._command(lambda: None)
        self._thread.join(10)

    def take(self) -> deque[tuple[str, Any]]:
        self._delivering = False
        return self._events

    def trusted(self) -> bool:
        """Whether new work may begin: less than 80 % of the lease have passed since the last confirmed heartbeat."""
        return _outbox.elapsed(self.confirmed) < 0.8 * self.lease

    def load_history(self, run: Run) -> None:
        """Fetches the rest of a history, or of a task with a base all; the events are ``history``, ``unreadable``."""
        self._command(lambda: self._keep(asyncio.ensure_future(_outbox.load(self, run))))

    # The thread.

    def _event(self, kind: str, what: Any) -> None:
        self._events.append((kind, what))
        if not self._delivering:
            self._delivering = True
            self._deliver()

    def _keep(self, task: asyncio.Future[Any]) -> None:
        self._tasks_of_ours.add(task)
        task.add_done_callback(self._tasks_of_ours.discard)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._unexpected)
        self._kick = asyncio.Event()
        self._tasks_of_ours: set[asyncio.Future[Any]] = set()
        self._ready.set()
        self._keep(asyncio.ensure_future(_outbox.watch(self)))
        if self.worker.beats_apart:
            self.child = _outbox.Child(self.endpoint)
        failures = 0
        self._channel = dial(grpc.aio, self.endpoint, soon=False)
        while not self.stopped and not self.parting:
            try:
                await self._one_session()
            except _Refused as e:
                if self._forget_id(e.error):
                    continue
                self.refused = e.error
                break
            except (_Broken, grpc.aio.AioRpcError) as e:
                lost = isinstance(e, grpc.aio.AioRpcError) and self._registered
                reason: object = call_error(e) if isinstance(e, grpc.aio.AioRpcError) else e
            self._close_stream()
            if self.stopped or self.parting:
                break
            failures = 1 if lost else failures + 1
            limit = 2 if self.draining else min(60, 2 ** (failures - 1))
            pause = random.uniform(0, limit)
            self.log.warning("no session with the server at %s; connecting again within %.1f s: %s",
                             self.endpoint.address, pause, reason)
            await self._wait(pause)
        self._parted.set()
        if self.child is not None:
            self.child.close()
        for task in list(self._tasks_of_ours):
            task.cancel()
        await asyncio.gather(*self._tasks_of_ours, return_exceptions=True)
        await self._channel.close()
        self._event("stopped", None)

    def _unexpected(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), BlockingIOError):  # of gRPC, where several loops share its queue
            loop.default_exception_handler(context)

    async def _wait(self, pause: float) -> None:
        until = time.monotonic() + pause
        while not self.stopped and time.monotonic() < until:
            try:
                await asyncio.wait_for(self._kick.wait(), until - time.monotonic())
                self._kick.clear()
            except TimeoutError:
                return
            if self.draining and until - time.monotonic() > 0.1:
                return

    def _forget_id(self, error: ServerError) -> bool:
        """Drops an id that the server chose and no longer accepts; false for other refusals."""
        if error.code not in ("NOT_FOUND", "CONFLICT") or not self.worker_id or self.worker_id == self._own_id:
            return False
        self.log.info("the server no longer accepts the worker id %s; registering for a new one", self.worker_id)
        self.worker_id = ""
        return True

    async def _one_session(self) -> NoReturn:
        """Serves one stream until it ends, which raises why."""
        self._registered = False
        _, path, _, parse = METHODS["Session"]
        stream = self._channel.stream_stream(path, response_deserializer=parse)(
            metadata=metadata(self.endpoint))
        try:
            await self._on_stream(stream)
        except grpc.aio.AioRpcError as e:
            if e.code() in FATAL:
                raise _Refused(call_error(e)) from None
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise _Broken("the connection is made again") from None  # the channel was closed
        finally:
            stream.cancel()

    async def _on_stream(self, stream: Any) -> NoReturn:
        hello, at = w.RegisterRequest(), (time.monotonic(), time.time())
        hello.CopyFrom(self.worker.hello)
        self._own_id = hello.worker_id
        hello.worker_id = self.worker_id or hello.worker_id
        try:
            async with asyncio.timeout(_HELLO_TIMEOUT):
                await stream.write(w.SessionRequest(seq=1, hello=hello).SerializeToString())
                first = await stream.read()
        except TimeoutError:
            raise _Broken("the server did not answer hello in time") from None
        except asyncio.InvalidStateError:
            first = _EOF
        if first is _EOF:
            await self._raise(stream)
        if first.HasField("error"):
            if repeatable(first.error) or first.error.code == common.ERROR_CODE_PRECONDITION_FAILED:
                raise _Broken(first.error.message)
            raise _Refused(detail_error(first.error))
        self._welcomed(first.welcome, at)
        writer = asyncio.ensure_future(_outbox.write(self, stream))
        beats = asyncio.ensure_future(_outbox.beats(self))
        try:
            while True:
                r = await stream.read()
                if r is _EOF:
                    break
                if r.batch:
                    for one in r.batch:
                        self._came(w.SessionResponse.FromString(one))
                else:
                    self._came(r)
        finally:
            writer.cancel()
            beats.cancel()
            await asyncio.gather(writer, beats, return_exceptions=True)
        await self._raise(stream)

    async def _raise(self, stream: Any) -> NoReturn:
        if await stream.code() is grpc.StatusCode.OK:
            raise _Broken("the server closed the session")
        raise grpc.aio.AioRpcError(await stream.code(), await stream.initial_metadata(),
                                   await stream.trailing_metadata(), details=await stream.details())

    def _welcomed(self, r: w.RegisterResponse, at: tuple[float, float]) -> None:
        self.interval = r.heartbeat_interval_ms / 1000 or float(r.heartbeat_interval_secs) or 10.0
        self.lease = r.lease_ms / 1000 or max(30.0, 3 * self.interval)
        self.keeps_order, self.resumes_runs, self._takes_batches = r.keeps_order, r.resumes_runs, r.takes_batches
        first, self.worker_id = not self.worker_id, r.worker_id
        if not self.held:
            self.confirmed = at
        self.contact, self._given_up = at, 0.0
        self._streams += 1
        self._epoch, self._seq, self._tasks, self._credit = self._streams, 1, 0, 0
        self._sent = {}
        self._registered = True
        self.log.info("worker %s registered%s: namespace %s, server %s", r.worker_id,
                      "" if first else " again, on a new session", self.endpoint.namespace, self.endpoint.address)
        _outbox.beat(self)
        for ops in self._outboxes.values():
            for op in ops.values():
                op.later = False
                self._enqueue(op)
        if self.draining:
            self._goodbye(True)
        else:
            self._credit = max(self.worker.max_concurrent - len(self.held), 0)
        self._event("ready", None)
        self._kick.set()

    def _close_stream(self) -> None:
        own = [op for op in (*self._urgent, *self._queue, *self._sent.values()) if op.run is None]
        self._epoch = 0
        self._queue.clear()
        self._urgent.clear()
        self._sent = {}
        self._withdrawn = {}
        for op in own:
            if op.answer is not None:
                op.answer(w.SessionResponse())
            elif op.kind == "set_note":
                self._event("note_lost", op.msg.set_note)

    def _came(self, r: w.SessionResponse) -> None:
        kind = r.WhichOneof("event")
        if kind == "task":
            self.held[r.task.run_id] = r.task.lease_token
            self._tasks += 1
            self._event("task", r.task)
        elif kind in ("cancel_task", "pause_task", "wait_over", "drain"):
            self._event(kind, getattr(r, kind))
        elif r.seq:
            op = self._sent.pop(r.seq, None)
            if op is None:
                return
            if kind == "error":
                op.unknown = self._epoch
            else:
                op.prev = None
            if op.run is None:
                if op.answer is not None:
                    op.answer(r)
                return
            ops = self._outboxes.get(op.run)
            if ops is None or ops.get(op.index) is not op:
                self._answered_late(op)
                return
            if kind == "error" and repeatable(r.error):
                self._repeat_later(op)
                return
            self._repeats.pop(op.run, None)
            if kind != "error" or not op.ends(r.error):
                op.unknown = 0  # operations after it may take effect
                del ops[op.index]
            self._event("answer", (op, r))

    def _take_posted(self) -> None:
        self._poked = False
        posted = self._posted
        while posted:
            op = posted.popleft()
            if not isinstance(op, Op):
                op()
                continue
            if op.run is None:
                self._enqueue(op)
                continue
            ops = self._outboxes.get(op.run)
            if ops is None:
                ops = self._outboxes[op.run] = {}
            if ops:
                op.prev = next(reversed(ops.values()))
            ops[op.index] = op
            if self._withdrawn.get(op.run):
                op.later = True
            elif op.prev is not None and (op.prev.later or op.prev.epoch != self._epoch or not self._epoch):
                op.later = op.prev.later  # it is sent together with that one
            else:
                self._enqueue(op)
        self._kick.set()

    def _answered_late(self, op: Op) -> None:
        """Takes the answer to an operation that was withdrawn: what waits for it goes on."""
        assert op.run is not None
        left = self._withdrawn.get(op.run, set())
        left.discard(op)
        if not left and self._withdrawn.pop(op.run, None) is not None:
            for waiting in self._outboxes.get(op.run, {}).values():
                if waiting.later:
                    waiting.later = False
                    self._enqueue(waiting)

    def _repeat_later(self, op: Op) -> None:
        op.later = True
        run = op.run
        assert run is not None
        tries = self._repeats.get(run, 0)
        if tries < 0:
            return  # scheduled
        self._repeats[run] = -(tries + 1)
        delay = min(0.1 * 2 ** min(tries + 1, 10), 10.0)

        def repeat() -> None:
            if run in self._repeats:
                self._repeats[run] = abs(self._repeats[run])
            for again in list(self._outboxes.get(run, {}).values()):
                if again.later:
                    again.later, again.epoch = False, 0
                    self._enqueue(again)

        self._loop.call_later(delay / 2 + random.uniform(0, delay / 2), repeat)

    def _enqueue(self, op: Op, *, first: bool = False) -> bool:
        if self._epoch == 0 or op.epoch == self._epoch:
            return False
        op.epoch = self._epoch
        (self._urgent if first else self._queue).append(op)
        self._kick.set()
        return True

    async def _again(self) -> None:
        await self._channel.close()
        self._channel = dial(grpc.aio, self.endpoint, soon=False)

    def _forgotten(self, run: Run) -> None:
        self._outboxes.pop(run, None)
        self._repeats.pop(run, None)
        self._withdrawn.pop(run, None)
        self._one_more()

    def _one_more(self) -> None:
        if self._epoch and not self.draining:
            self._credit += 1
            self._kick.set()

    def _goodbye(self, drain: bool, answer: Callable[[w.SessionResponse], None] | None = None) -> bool:
        return self._enqueue(Op(w.SessionRequest(goodbye=w.DeregisterRequest(worker_id=self.worker_id, drain=drain)),
                                "goodbye", answer=answer))

    def _part(self) -> None:
        self.parting = True

        def goodbye() -> None:
            def answered(r: w.SessionResponse) -> None:
                if r.HasField("goodbye"):
                    self.log.info("worker %s deregistered", self.worker_id)
                self._parted.set()

            if not self._goodbye(False, answered):
                self._parted.set()

        _outbox.beat(self, goodbye)


_MACHINES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}
PLATFORM = f"{'windows' if sys.platform == 'win32' else sys.platform}-" + _MACHINES.get(
    platform.machine(), platform.machine().lower())
