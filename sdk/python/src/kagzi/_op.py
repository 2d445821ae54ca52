"""Operations: the messages of a session that the server answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .errors import lease_gone
from .v1 import common_pb2 as common
from .v1 import worker_pb2 as w

if TYPE_CHECKING:
    from ._run import Run

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

    def __init__(self, msg: w.SessionRequest, run: Run | None, index: int,
                 answer: Callable[[w.SessionResponse], None] | None,
                 refused: Callable[[common.ErrorDetail], None] | None) -> None:
        self.msg, self.run, self.index, self.answer, self.refused = msg, run, index, answer, refused
        self.kind: str = msg.WhichOneof("operation") or ""
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
