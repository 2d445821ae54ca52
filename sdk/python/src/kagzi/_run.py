"""One activation of a run on this worker, from its task to the end of the lease.

Results reach the code one at a time, in the order in which the server recorded them (Step.settled). Between two of
them the code runs until nothing is ready. A call whose name has no record is new: it takes effect at once if the code
has made all recorded calls that it owes; otherwise it is held, because another branch may still make them. If none can,
the code has diverged.

Everything here runs on the worker's own loop, in one thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _code, _order, _parking, _trace, codec
from ._calls import ACTIVE, CANCELLED, CHILD, OVER, RECORDED, Call, StepCall
from ._convert import set_time, unix
from ._loop import Branch, NameUse, Parked, RunLoop, current
from ._order import OWN, claim, recorded_as
from ._outbox import ASKS, Op, may_end_lease
from ._waits import ChildrenCall, ChildState, hint
from .errors import ConfigError, error_detail, lease_gone
from .v1 import common_pb2 as common, worker_pb2 as w, workflow_pb2 as f

if TYPE_CHECKING:
    from ._code import WorkflowCode
    from .worker import Worker

_SCALARS = (str, int)  # faster to look for than str | int
_NO_INFO = codec.PayloadInfo("")
_PLACES = frozenset(("completed_step", "failed_step", "sleeping", "awaited_signal"))
_RESULTS = frozenset(("complete_step", "fail_step", "start_child"))  # the code may have seen what they record


class Run:
    """One activation of a run."""

    replaying = False  # against a record, without a server
    rejected = False  # the SDK failed it
    unreadable = ""  # the step whose recorded result cannot be read
    fail, reject, misused = _parking.fail, _parking.reject, _parking.misused
    ask_cancel, ends_with, lose = _order.ask_cancel, _order.ends_with, _order.lose
    give_back, ask_pause = _parking.give_back, _parking.ask_pause
    go_on, pause_if_idle, alone = _parking.go_on, _parking.pause_if_idle, _parking.alone
    read_record, judge, complete_own = _order.read_record, _order.judge, _order.complete_own
    hand, report, release = _order.hand, _order.report, _order.release
    record, children_ended = _order.record, _order.children_ended
    suspend, resume = _parking.suspend, _parking.resume
    note, rest, warn_large = _code.note, _code.rest, _code.warn_large
    hint = hint

    def __init__(self, worker: Worker, task: w.Task, code: WorkflowCode) -> None:
        self.worker, self.code = worker, code
        self.codec = worker.codec
        self.loop = RunLoop(self._forked, self.misused)
        self.hold(task)
        self._start = ""

        # between two leases, while the code waits in memory
        self.away = self.refusals = False
        self.size, self.keep_until = task.input.ByteSize(), 0.0
        self.next: w.Task | None = None  # came before the answer that ends this lease
        self.next_pauses = False

        self.quitted = self.closing = self.ended = False
        self.going = self.main_over = self.end_refused = False
        self.root: asyncio.Task[Any] | None = None
        self.root_branch = Branch(self, None)
        self.next_branch: Branch | None = None
        self.cause = ""

        # operations
        self.ops: dict[int, Op] = {}
        self.issued = self.asking = self.questions = 0
        self.again = 0  # index up to which operations were sent again on a new stream
        self.cancel_key = 0  # where the cancellation took effect, in the order of results
        self.places: dict[int, int] = {}  # where the server has recorded results of this activation, by their keys
        self.leaving: Op | None = None  # unanswered, and may end the lease: nothing goes behind it
        self.afterwards: list[Callable[[], object]] = []  # what waits for its answer

        # order of results
        self.recorded = self.current = self.calling = 0
        self.results: list[tuple[int, int, tuple[Any, ...], bool, Call | None]] = []
        self.endings: list[Call] = []
        self.held: list[Call] = []
        self.starting: list[Call] = []
        self.orders: dict[asyncio.Task[Any], Branch] = {}
        self.open: dict[Call, None] = {}
        self.parked: dict[Call, None] = {}
        self.bodies: list[StepCall] = []
        self.working = self.bodies_running = self.generation = 0
        self.history: dict[str, f.Step] = {}
        self.uncalled: dict[str, bool] = {}
        self.owing = self.own_left = 0
        self.verdicts: dict[str, common.ErrorDetail] = {}
        self.verdict_count = 0
        self.names: dict[str, NameUse] = {}
        self.misfit: f.Call | None = None
        self.unreceived: set[str] = set()
        self.children: dict[str, ChildState] = {}

        # cancellation and pause
        self.cancelling = self.cancelled = self.pausing = False
        self.at_work: set[str] = set()
        self.grace_until = unix(task.cancel_grace_until) if task.HasField("cancel_grace_until") else 0.0
        self.cancel_asked = task.cancel_requested

        self._note: str | None = None
        self._note_next = 0.0
        self._note_timer: asyncio.TimerHandle | None = None

    def hold(self, task: w.Task) -> None:
        """Begins the time for which this worker holds the run under one lease."""
        self.task, self.since, self.received = task, time.monotonic(), time.time()
        self.step_timeout = task.timeouts.start_to_close_timeout_ms / 1000 or 600.0
        self.heartbeat_timeout = task.timeouts.heartbeat_timeout_ms / 1000
        self.ahead = 0.0  # how far the server's clock is ahead of ours, in seconds
        if task.HasField("lease_expires_at"):
            self.ahead = (unix(task.lease_expires_at) - max(self.worker.session.lease, self.heartbeat_timeout)
                          - self.received)
        self.span = _trace.activation(self)

    def activation_ended(self, outcome: str) -> None:
        _trace.end(self.span, outcome)
        self.span = None

    # Time, codec and names.

    def now(self) -> float:
        """Returns the time by the server's clock, in seconds since 1970. It is never early."""
        return self.received + self.ahead + (time.monotonic() - self.since)

    def start_digest(self) -> str:
        """Returns PayloadInfo.start of the run."""
        if not self._start:
            self._start = codec.start_digest(self.task.workflow_type, self.task.external_id, self.task.input.data)
        return self._start

    def payload_info(self, kind: str, step: str) -> codec.PayloadInfo:
        """Describes a step result or a signal for the codec; without one it says nothing."""
        return _NO_INFO if self.codec is None else codec.PayloadInfo(kind, start=self.start_digest(), step=step)

    # The life of the code.

    def begin(self, steps: Iterable[f.Step]) -> None:
        """Starts the code, with the whole history."""
        for s in steps:
            self.size += s.output.ByteSize()
            _order.remember(self, s)
        _order.try_cancel(self)
        self.root_branch.replayed = bool(self.uncalled)
        context = contextvars.Context()
        self.root_branch.context = context
        context.run(current.set, self.root_branch)
        self.next_branch = self.root_branch
        self.root = self.loop.create_task(self.code.run(self), name=f"kagzi run {self.task.run_id}")
        self.root.add_done_callback(self._root_done)
        self.go()

    def _forked(self, loop: RunLoop, context: contextvars.Context | None) -> tuple[contextvars.Context, Branch]:
        """Makes the branch of a new task, and the context in which it runs."""
        branch, self.next_branch = self.next_branch, None
        if branch is not None and branch.context is not None:
            return branch.context, branch
        parent = current.get()
        if parent is None or parent.run is not self:
            parent = self.root_branch
        branch = Branch(self, parent)
        inside = context if context is not None else contextvars.copy_context()
        inside.run(current.set, branch)
        branch.context = inside
        return inside, branch

    def _root_done(self, _: asyncio.Task[Any]) -> None:
        self.main_over = True

    def go(self) -> None:
        """Runs the code, hands over results one at a time, and goes on with what follows when all code waits."""
        if self.going or self.ended or self.quitted or self.away:
            return
        if self.working and not (self.owing or self.loop._ready or self.starting or self.results or self.endings
                                 or self.main_over or self.loop.exit):
            return  # what works goes on by itself
        self.going = True
        try:
            while not self.quitted:
                self._run_code()
                if self.quitted or self.closing:
                    break
                if self.loop.exit is not None:
                    self.fail(error_detail(self.loop.exit))
                    break
                if self.main_over and _parking.finish(self):
                    break
                self._start_calls()
                if self.closing or not _order.hand_next(self):
                    break
        finally:
            self.going = False
        if self.quitted:
            self.drop()
            return
        if self.closing or self.main_over:
            return
        if _parking.at_rest(self):
            _parking.diverge(self)
        elif self.working == 0:
            _parking.idle(self)

    def _run_code(self) -> None:
        if not self.loop._ready:
            return
        watch, reporter = self.worker.watch, self.worker.reporter
        watch.run, watch.since = self, time.monotonic()
        try:
            if reporter is None:
                self.loop.run_ready()
            else:
                with reporter:
                    self.loop.run_ready()
        finally:
            watch.run = None

    def drop(self) -> None:
        if self.loop.dead or self.going:
            return
        for call in list(self.parked):
            call.unpark()
        if self.ended or self.cause != "finished":
            self._end_bodies()
        self.loop.close()
        if self.ended:
            self._let_go()

    def _let_go(self) -> None:
        """Cuts the cycles of references of a run that is over, so that its memory need not wait for the collector."""
        self.loop.let_go()
        for branch in (self.root_branch, *self.orders.values()):
            branch.task = branch.context = None
        self.root = None
        self.orders, self.names, self.open = {}, {}, {}
        del self.root_branch

    def _end_bodies(self) -> None:
        for call in self.open:
            if isinstance(call, StepCall) and call.info is not None:
                call.end_body(call.info)
                if call.timer is not None:
                    call.timer.cancel()
                if self.ended and call.announced is not None:
                    call.announced.cancel()

    def quit(self, cause: str) -> None:
        """Makes the code end: none of it runs any more, but for what dropping runs."""
        if not self.quitted:
            self.quitted, self.cause = True, cause
            self.worker.loop.call_soon(self.drop)

    def over(self, cause: str) -> None:
        """Ends the activation: the lease is no longer held. Further calls have no effect."""
        if self.ended:
            return
        self.ended = True
        self.ops.clear()
        self.rest()
        self.quit(cause)
        for call in list(self.parked):
            call.unpark()
        self._end_bodies()
        if not self.away:
            self.activation_ended(cause)
            self.worker.forget(self)
        if self.loop.dead:
            self._let_go()

    # Calls of the code.

    async def make(self, call: Call) -> Any:
        """Makes a call and returns its result to the code."""
        loop = self.loop
        if self.quitted or self.closing or loop.dead:
            await Parked(loop)
        self._open(call)
        if call.state != OVER:
            call.future = loop.create_future()
            try:
                await call.future
            except asyncio.CancelledError:
                self._abandon(call)
                raise
        if self.quitted or loop.dead:
            await Parked(loop)
        return call.value()

    def _open(self, call: Call) -> None:
        if call.name or not isinstance(call, ChildrenCall):
            if call.written.startswith(OWN):
                raise self.reject(ConfigError(f"step name {call.written!r}: names that begin with {OWN} are reserved "
                                               "for the SDK"))
            call.name, call.record = claim(self, call.branch, call.written, call.kind, call.detail)
        else:
            call.branch.tick()
            call.branch.come_to_wait()
            call.branch.own_result = False
        self.calling += 1
        call.number = self.calling
        self.open[call] = None
        if isinstance(call, ChildrenCall):
            self._open_children(call)
            return
        record, verdict = call.record, self.verdicts.get(call.name)
        if verdict is not None and verdict.code == common.ERROR_CODE_CANCELLED:  # by an earlier version
            self.hand(call, CANCELLED)
        elif verdict is not None and record is None:
            call.failure = verdict
            self.hand(call, RECORDED)
        elif record is not None and recorded_as(record, call.kind):
            if record.settled > 0 and call.kind != CHILD:
                _order.queue(self, call, record.settled, False)
            else:
                self.hand(call, RECORDED)
        elif self.cancelled and not call.clean:
            self.hand(call, CANCELLED)
        elif record is not None:
            call.branch.write_lines()
            self._activate(call)
        else:
            self.held.append(call)
        self.release()
        if call.state == ACTIVE and record is None:
            call.branch.write_lines()

    def _open_children(self, call: ChildrenCall) -> None:
        ended = any((v := self.verdicts.get(c.name)) is not None and v.code == common.ERROR_CODE_CANCELLED
                    for c in call.children)
        if not call.clean and (ended or (self.cancelled and not _order.known_at_cancel(self, call))):
            self.hand(call, CANCELLED)
        elif not _order.children_known(self, call):
            self._activate(call)

    def _abandon(self, call: Call) -> None:
        """Takes note that the code no longer waits: a call that took effect goes on, and its result reaches nobody."""
        call.abandoned = True
        if call.name in self.names:
            self.names[call.name].in_flight = False
        if call in self.held or call in self.starting:  # it has had no effect yet, and gets none
            self.held = [c for c in self.held if c is not call]
            self.starting = [c for c in self.starting if c is not call]
            _order.end_call(self, call, CANCELLED)

    def _activate(self, call: Call) -> None:
        call.state = ACTIVE
        call.set_working(True)
        self.starting.append(call)

    def _start_calls(self) -> None:
        """Lets the calls that the code made take effect, now that it waits."""
        while self.starting and not self.closing and not self.quitted:
            starting, self.starting = self.starting, []
            for n, call in enumerate(starting):
                if self.closing or self.quitted:
                    return
                self.starting = starting[n + 1:]
                if call.state == ACTIVE and self.replaying:
                    call.halt()
                elif call.state == ACTIVE:
                    call.start()

    def want_body(self, call: StepCall) -> None:
        """Starts a step's code when all earlier results are durable and the lease can be trusted."""
        call.wants_after = self.issued
        self.bodies.append(call)
        self.start_bodies()

    def start_bodies(self) -> None:
        """Starts the code of the steps that may run."""
        waiting: list[StepCall] = []
        unrecorded = self.issued + 1
        for index, op in self.ops.items():
            if op.kind in _RESULTS:
                unrecorded = index
                break
        may = not self.pausing and (self.cancelled or not self.cancelling)
        for call in self.bodies:
            if call.state != ACTIVE or call.failing or self.ends_with(call) or self.quitted or self.closing:
                continue
            if unrecorded <= call.wants_after or not may or not self.worker.session.trusted():
                waiting.append(call)
            else:
                call.body()
        self.bodies = waiting

    # Operations.

    def send(self, kind: str, answer: Callable[[w.SessionResponse], None] | None = None,
             refused: Callable[[common.ErrorDetail], None] | None = None, /, *, started: float = 0.0,
             **fields: Any) -> Op:
        """Sends an operation of this lease, of a kind and with fields as on the wire; what is None stays unset.

        answer gets the answer, which is durable, and refused a final refusal. started is by the server's clock.
        """
        msg, task = w.SessionRequest(), self.task
        made = getattr(msg, kind)  # fields are set in place, because messages are copied when they become fields
        made.lease_token = task.lease_token
        if kind != "start_child":
            made.namespace, made.run_id = task.namespace, task.run_id
        if started:
            set_time(made.started_at, started)
        for name, value in fields.items():
            if isinstance(value, _SCALARS):
                setattr(made, name, value)
            elif isinstance(value, list):
                getattr(made, name).extend(value)
            elif value is not None:
                getattr(made, name).CopyFrom(value)
        self.issued += 1
        op = Op(msg, kind, self, self.issued, answer, refused)
        if self.ended:
            return op  # it would count for nothing
        if may_end_lease(msg, kind):
            _code.flush(self)
            self.leaving = op
        if kind in ASKS:
            self.asking += 1
        self.ops[op.index] = op
        self.worker.session.post(op)
        return op

    def answered(self, op: Op, r: w.SessionResponse) -> None:
        """Takes the server's answer to an operation, which is final."""
        if self.ended or self.ops.get(op.index) is not op:
            return
        if r.HasField("error") and op.ends(r.error):
            if lease_gone(r.error):
                self.lose(r.error)
            else:
                _parking.refused(self, op, r.error)
            return
        del self.ops[op.index]
        if (self.results or op.kind in ASKS) and r.WhichOneof("event") in _PLACES:
            answer = getattr(r, r.WhichOneof("event") or "")
            place = answer.step.settled if r.HasField("completed_step") else answer.settled
            if place:
                self.places[self.recorded + op.index] = place
        if op.kind in ASKS:
            self.asking -= 1
        if op is self.leaving:
            self.leaving = None
        taken, refused, op.answer, op.refused = op.answer, op.refused, None, None  # which refer to the operation
        if not r.HasField("error"):
            if taken is not None:
                taken(r)
        elif refused is not None:
            self.refusals = True
            refused(r.error)
        else:
            self.refusals = True
            self.worker.log.debug("start of a step not recorded: %s", r.error.message)
        if self.away:
            return
        if self.leaving is None and not self.ended:
            waiting, self.afterwards = self.afterwards, []
            for act in waiting:
                act()
        if self.bodies:
            self.start_bodies()
        self.go()

    def after_leaving(self, act: Callable[[], object]) -> bool:
        """Puts an act off until the answer of an operation that may end the lease; false if there is none."""
        if self.leaving is None or self.closing or self.ended:
            return False
        self.afterwards.append(act)
        return True
