"""A small process that beats for a worker whose own interpreter is kept busy, by a regular expression for instance.

It is told each beat of the worker, and beats itself while it is told none, for at most 10 minutes. It ends with it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING, Any

from ._profile import TLS, Endpoint
from ._wire import Rpc
from .errors import KagziError
from .v1 import worker_pb2 as w

if TYPE_CHECKING:
    from ._session import Session

_PROGRAM = "import sys; from kagzi import _beat; _beat.main(0, sys.stdout)"
AT_MOST = 600.0  # seconds that it beats for a worker that says nothing


class Child:
    """The process, as the connection of the worker sees it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
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
            at = (float(line), time.time() - time.monotonic() + float(line))
            session.confirmed = max(session.confirmed, at)
            session.contact = max(session.contact, at)

    def close(self) -> None:
        """Ends it."""
        self._in.close()
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
