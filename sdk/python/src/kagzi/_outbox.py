"""What a session sends: operations, the messages that the server answers, and heartbeats.

Operations are sent in order, and again when need be. Heartbeats renew the leases of the worker's runs, and tell which
are lost or cancelled. A small process can beat, too, for a worker whose own interpreter is kept busy, by a regular
expression for instance. It is told each beat of the worker, and beats itself while it is told none, for at most 10
minutes. It ends with it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import random
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import grpc

from ._contract import METHODS
from ._wire import TLS, Endpoint, Rpc, metadata
from .errors import KagziError, call_error, lease_gone, repeatable
from .v1 import common_pb2 as common, worker_pb2 as w

if TYPE_CHECKING:
    from ._run import Run
    from ._session import Session

_BATCH = 64 << 10  # bytes of the operations that are written as one message
FATAL = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.NOT_FOUND,
          grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED)

_SUBJECTS = {"begin_step": "the beginning of step", "complete_step": "the result of step",
             "fail_step": "the failure of step", "sleep": "sleep", "await_signal": "the wait for signal",
             "start_child": "the start of child", "await_children": "the wait for child runs"}
_ENDS = frozenset(("complete_workflow", "fail_workflow", "release_task"))
ASKS = frozenset(("fail_step", "sleep", "await_signal", "await_children"))  # an answer may be a result


def may_end_lease(msg: w.SessionRequest, kind: str) -> bool:
    """Whether an operation may end the lease, so that nothing after it counts."""
    return kind in _ENDS or (kind in ASKS and not getattr(msg, kind).hold)


class Op:
    """One message to the server that gets an answer."""

    __slots__ = ("answer", "epoch", "index", "kind", "later", "msg", "prev", "refused", "run", "unknown")

    def __init__(self, msg: w.SessionRequest, kind: str, run: Run | None = None, index: int = 0,
                 answer: Callable[[w.SessionResponse], None] | None = None,
                 refused: Callable[[common.ErrorDetail], None] | None = None) -> None:
        self.msg, self.kind, self.run, self.index, self.answer, self.refused = msg, kind, run, index, answer, refused
        self.prev: Op | None = None
        self.epoch = 0  # of the stream that it was queued on last
        self.unknown = 0  # epoch of the stream on which it was last refused
        self.later = False  # it is to be repeated after a delay

    @property
    def parks(self) -> bool:
        """Whether the run may be parked by it."""
        return self.kind in ASKS or (self.kind == "release_task" and self.msg.release_task.park)

    def ends(self, d: common.ErrorDetail) -> bool:
        """Whether the run cannot continue here when the operation is refused."""
        return lease_gone(d) or (self.refused is None and self.kind != "begin_step")

    def subject(self) -> str:
        """Names what the operation records, for messages."""
        one = getattr(self.msg, self.kind)
        name = getattr(one, "signal_name", "") or getattr(one, "step_name", "")
        return f"{_SUBJECTS[self.kind]} {name}".strip() if self.kind in _SUBJECTS else "the run's end"


async def load(session: Session, run: Run) -> None:
    _, path, serialize, parse = METHODS["GetHistory"]
    call = session._channel.unary_unary(path, request_serializer=serialize, response_deserializer=parse)
    steps, token, failures = [] if run.task.base else list(run.task.history), run.task.next_history_token, 0
    while True:
        try:
            request = w.GetHistoryRequest(namespace=run.task.namespace, run_id=run.task.run_id, token=token)
            page = await call(request, metadata=metadata(session.endpoint))
        except grpc.aio.AioRpcError as e:
            failures += 1
            if e.code() in FATAL or failures > 5:
                session._event("unreadable", (run, call_error(e)))
                return
            await asyncio.sleep(random.uniform(0, min(60, 2 ** (failures - 1))))
            continue
        steps += page.history
        token, failures = page.next_history_token, 0
        if not token:
            break
    session._event("history", (run, steps))


async def write(session: Session, stream: Any) -> None:
    """Writes what waits to be sent; operations that wait together leave as one message."""
    try:
        while True:
            await session._kick.wait()
            session._kick.clear()
            while session._urgent or session._queue or session._credit:
                while session._urgent:
                    await stream.write(_numbered(session, session._urgent.popleft()))
                batch: list[bytes] = []
                size = 0
                while (op := _next(session)) is not None:
                    batch.append(_numbered(session, op))
                    size += len(batch[-1])
                    if size >= _BATCH or not session._takes_batches:
                        break
                large = [batch.pop()] if batch and len(batch[-1]) > _BATCH else []  # it travels alone
                for some in (batch, large):
                    if some:
                        await stream.write(some[0] if len(some) == 1 else
                                           w.SessionRequest(batch=some).SerializeToString())
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        pass  # the stream broke; reading tells why
    except Exception as e:
        session.log.error("cannot send an operation: %s", e)
        stream.cancel()


def _next(session: Session) -> Op | None:
    while session._queue:
        op = session._queue.popleft()
        if op.run is None or session._outboxes.get(op.run, {}).get(op.index) is op:
            return op  # else the run is over, or the operation was withdrawn
    if not session._credit:
        return None
    credit, session._credit = session._credit, 0
    return Op(w.SessionRequest(credit=w.Credit(tasks=credit)), "credit")


def _numbered(session: Session, op: Op) -> bytes:
    """Gives an operation its number on this stream, and returns it encoded."""
    session._seq += 1
    msg, prev = op.msg, op.prev
    msg.seq, msg.after, op.unknown = session._seq, 0, 0
    if prev is not None and (session._sent.get(prev.msg.seq) is prev or prev.unknown == session._epoch):
        msg.after = prev.msg.seq
    else:
        op.prev = None
    session._sent[session._seq] = op
    return msg.SerializeToString()


async def beats(session: Session) -> None:
    step = min(0.25, session.interval / 40)
    while True:
        now = time.time()
        due = (now + session.interval) // step * step
        wake = time.monotonic() + due - now
        await asyncio.sleep(due - now)
        late = time.monotonic() - wake
        if late > max(0.5, session.interval / 10):
            session.worker.late_beat(late)
        beat(session)


def beat(session: Session, then: Callable[[], None] | None = None) -> None:
    if session.child is not None:
        session.child.beaten(session)
    received, held = session._tasks, dict(session.held)
    with session._lock:
        completed, failed, runs, spent = session._counts
        session._counts[0] = session._counts[1] = 0
    sent = (time.monotonic(), time.time())
    message = w.HeartbeatRequest(
        worker_id=session.worker_id, active_count=len(held), completed_delta=int(completed), failed_delta=int(failed),
        stats=_stats(session, runs, spent), held_is_whole=True, tasks_received=received,
        blocked=session.worker.watch.blocked(), held=[w.Lease(run_id=i, lease_token=t) for i, t in held.items()])

    def answered(r: w.SessionResponse) -> None:
        accepted = _beaten(session, r, sent)
        if not accepted:
            with session._lock:
                session._counts[0] += completed
                session._counts[1] += failed
        if then is not None:
            then()

    op = Op(w.SessionRequest(heartbeat=message), "heartbeat", answer=answered)
    if not session._enqueue(op, first=True):
        answered(w.SessionResponse())


def _beaten(session: Session, r: w.SessionResponse, sent: tuple[float, float]) -> bool:
    if r.HasField("error"):
        if repeatable(r.error):
            session.log.warning("heartbeat failed; trying again at the next interval: %s", r.error.message)
        else:
            session.log.info("heartbeat refused; registering again: %s", r.error.message)
            session._urgent.clear()
            session._queue.clear()
            session._keep(asyncio.ensure_future(session._again()))
        return False
    if not r.HasField("heartbeat"):
        return False  # the stream broke
    for lost in r.heartbeat.lost:
        session._event("lost", lost)
    for cancelling in r.heartbeat.cancelling:
        session._event("cancel_task", cancelling)
    session.confirmed = max(session.confirmed, sent)
    session.contact, session._given_up = sent, 0.0
    session._event("renewed", None)
    if r.heartbeat.should_drain:
        session._event("drain", None)
    return True


async def watch(session: Session) -> None:
    """Looks once a second: gives up runs after twice the lease without contact, and reports blocked code."""
    while True:
        await asyncio.sleep(min(1.0, session.lease / 8))
        silent = elapsed(session.contact)
        if session.child is not None:
            session.child.catch_up(session)  # which may be held up for long, while the child goes on to beat
            silent = min(silent, elapsed(session.contact))
        if session.held and silent >= 2 * session.lease and silent - session._given_up >= session.lease:
            session._given_up = silent
            session._event("expired", silent)
        session.worker.watch.look(session.log)


def _stats(session: Session, runs: float, spent: float) -> w.WorkerStats:
    now, cpu = time.monotonic(), time.process_time()
    s = w.WorkerStats(uptime_seconds=int(now - session._started_at), memory_bytes=_resident())
    if now > session._cpu[0]:
        s.cpu_percent = 100 * (cpu - session._cpu[1]) / (now - session._cpu[0])
    session._cpu = now, cpu
    if runs:
        s.average_run_ms = 1000 * spent / runs
    return s


def elapsed(since: tuple[float, float]) -> float:
    """Returns the time since by the monotonic or the wall clock, whichever is longer."""
    return max(time.monotonic() - since[0], time.time() - since[1])


def _resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


_PROGRAM = "import sys; from kagzi import _outbox; _outbox.main(0, sys.stdout)"
_READY = "ready\n"
AT_MOST = 600.0  # seconds that it beats for a worker that says nothing


class Child:
    """The process, as the connection of the worker sees it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self.ready = threading.Event()  # it can beat
        os.set_blocking(self._out.fileno(), False)
        self._tell(dataclasses.asdict(endpoint))

    def _tell(self, what: object) -> None:
        try:
            self._in.write(json.dumps(what) + "\n")
            self._in.flush()
        except OSError:
            pass  # it has ended; the worker beats on its own

    def beaten(self, session: Session) -> None:
        """Tells of a beat of the worker."""
        self._tell({"worker_id": session.worker_id, "active": len(session.held), "interval": session.interval})

    def catch_up(self, session: Session) -> None:
        """Takes note of the beats that the child has made meanwhile."""
        for line in iter(self._out.readline, ""):
            if line == _READY:
                self.ready.set()
                continue
            at = (float(line), time.time() - time.monotonic() + float(line))
            session.confirmed = max(session.confirmed, at)
            session.contact = max(session.contact, at)

    def close(self) -> None:
        self._in.close()
        self._process.kill()  # it may still be starting, which takes seconds on a busy machine
        self._process.wait(10)
        self._out.close()


def main(said: int, out: IO[str]) -> None:
    """Beats when it is told nothing for an interval; said is a file descriptor."""
    rpc: Rpc | None = None
    worker: dict[str, Any] = {}
    told = beat = time.monotonic()
    text = b""
    while True:
        pause = beat + 1.1 * float(worker.get("interval", 1.0)) - time.monotonic()
        if select.select([said], [], [], max(pause, 0.0))[0]:
            data = os.read(said, 1 << 16)
            if not data:
                return  # the worker has ended
            *lines, text = (text + data).split(b"\n")
            for line in lines:
                if rpc is None:
                    settings = json.loads(line)
                    tls = settings.pop("tls")
                    rpc = Rpc(Endpoint(**settings, tls=TLS(**tls) if tls else None))
                    print(_READY, end="", file=out, flush=True)
                else:
                    worker, told = json.loads(line), time.monotonic()
                    beat = told
            continue
        beat = time.monotonic()
        if rpc is not None and worker and beat - told < AT_MOST:
            try:
                rpc.call("Heartbeat", w.HeartbeatRequest(worker_id=worker["worker_id"],
                                                         active_count=worker["active"]), worker["interval"])
            except KagziError:
                continue
            print(beat, file=out, flush=True)
