"""Operations, the messages of a session that the server answers; they are sent in order, and again when need be."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import grpc

from ._contract import METHODS
from ._wire import metadata
from .errors import call_error, lease_gone
from .v1 import common_pb2 as common
from .v1 import worker_pb2 as w

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
