"""Heartbeats: they renew the leases of the worker's runs, and tell which are lost or cancelled.

A small process can beat, too, for a worker whose own interpreter is kept busy, by a regular expression for instance. It
is told each beat of the worker, and beats itself while it is told none, for at most 10 minutes. It ends with it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from ._outbox import Op
from ._profile import TLS, Endpoint
from ._wire import Rpc
from .errors import KagziError, repeatable
from .v1 import worker_pb2 as w

if TYPE_CHECKING:
    from ._session import Session


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
        if session.child is not None:
            session.child.catch_up(session)
        silent = elapsed(session.contact)
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


_PROGRAM = "import sys; from kagzi import _heartbeat; _heartbeat.main(0, sys.stdout)"
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
