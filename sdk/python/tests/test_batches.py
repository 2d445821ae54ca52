"""Operations that wait together travel as one message (PROTOCOL.md §5.9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import kagzi
from kagzi import _outbox
from kagzi._session import Session
from kagzi.v1 import worker_pb2 as w

LARGE = "x" * (100 << 10)


async def text(i: int) -> str:
    return LARGE if i == 50 else str(i)


@kagzi.workflow
async def many() -> int:
    return sum(map(len, await asyncio.gather(*(kagzi.do(f"s-{i}", text, i) for i in range(100)))))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[w.SessionRequest]:
    """The messages that a worker writes."""
    messages: list[w.SessionRequest] = []
    write = _outbox.write

    class Stream:
        def __init__(self, stream: Any) -> None:
            self.cancel, self._stream = stream.cancel, stream

        async def write(self, data: bytes) -> None:
            messages.append(w.SessionRequest.FromString(data))
            await self._stream.write(data)

    monkeypatch.setattr(_outbox, "write", lambda session, stream: write(session, Stream(stream)))
    return messages


def results(messages: list[w.SessionRequest]) -> list[w.SessionRequest]:
    """Returns the results of steps, of batches, too, and checks that the numbers have no gap."""
    each = [one for m in messages for one in (map(w.SessionRequest.FromString, m.batch) if m.batch else [m])]
    assert [one.seq for one in each] == list(range(2, len(each) + 2))
    return [one for one in each if one.HasField("complete_step")]


def test_results_that_wait_together_travel_as_one_message(kagzi_env, written):
    kagzi_env.worker(many)
    assert kagzi_env.client.start(many).result(30) == 188 + len(LARGE)
    kagzi_env.stop_workers()
    assert len(results(written)) == 100
    assert max(len(m.batch) for m in written) > 10
    assert max(m.ByteSize() for m in written if m.batch) < 2 * _outbox._BATCH
    assert [m.ByteSize() > len(LARGE) for m in written if m.HasField("complete_step")].count(True) == 1


def test_an_older_server_gets_one_message_for_each(kagzi_env, written, monkeypatch):
    welcomed = Session._welcomed

    def older(session: Session, r: w.RegisterResponse, at: tuple[float, float]) -> None:
        r.takes_batches = False
        welcomed(session, r, at)

    monkeypatch.setattr(Session, "_welcomed", older)
    kagzi_env.worker(many)
    assert kagzi_env.client.start(many).result(30) == 188 + len(LARGE)
    kagzi_env.stop_workers()
    assert len(results(written)) == 100
    assert not any(m.batch for m in written)
