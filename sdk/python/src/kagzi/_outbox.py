"""Operations of runs that the server has not answered for good: they are sent in order, and again when need be."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import grpc

from ._op import Op
from ._wire import METHODS, metadata
from .errors import call_error
from .v1 import worker_pb2 as w

FATAL = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.NOT_FOUND,
          grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED)

if TYPE_CHECKING:
    from ._run import Run
    from ._session import Session


def withdraw(session: Session, op: Op) -> None:
    assert op.run is not None
    session._outboxes.get(op.run, {}).pop(op.index, None)
    op.unknown = 0
    if session._epoch and session._sent.get(op.msg.seq) is op:
        session._withdrawn.setdefault(op.run, set()).add(op)


def answered_late(session: Session, op: Op) -> None:
    """Takes the answer to an operation that was withdrawn: what waits for it goes on."""
    assert op.run is not None
    left = session._withdrawn.get(op.run, set())
    left.discard(op)
    if not left and session._withdrawn.pop(op.run, None) is not None:
        for waiting in session._outboxes.get(op.run, {}).values():
            if waiting.later:
                waiting.later = False
                session._enqueue(waiting)


def repeat_later(session: Session, op: Op, ops: dict[int, Op]) -> None:
    op.later = True
    run = op.run
    assert run is not None
    tries = session._repeats.get(run, 0)
    if tries < 0:
        return  # scheduled
    session._repeats[run] = -(tries + 1)
    delay = min(0.1 * 2 ** min(tries + 1, 10), 10.0)

    def repeat() -> None:
        if run in session._repeats:
            session._repeats[run] = abs(session._repeats[run])
        for again in list(session._outboxes.get(run, {}).values()):
            if again.later:
                again.later, again.epoch = False, 0
                session._enqueue(again)

    session._loop.call_later(delay / 2 + random.uniform(0, delay / 2), repeat)


def take_posted(session: Session) -> None:
    session._poked = False
    posted = session._posted
    while posted:
        op = posted.popleft()
        if not isinstance(op, Op):
            op()
            continue
        if op.run is None:
            session._enqueue(op)
            continue
        ops = session._outboxes.get(op.run)
        if ops is None:
            ops = session._outboxes[op.run] = {}
        if ops:
            op.prev = next(reversed(ops.values()))
        ops[op.index] = op
        if session._withdrawn.get(op.run):
            op.later = True
        elif op.prev is not None and (op.prev.later or op.prev.epoch != session._epoch or not session._epoch):
            op.later = op.prev.later  # it is sent together with that one
        else:
            session._enqueue(op)
    session._kick.set()


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
