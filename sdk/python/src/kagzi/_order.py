"""The names of calls, the recorded history, the order of results, and cancellation.

The code gets results one at a time, as the server recorded them. A cancellation is recorded once the code owes nothing,
and takes effect when that record is handed over.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _parking, codec
from ._calls import ACTIVE, CANCELLED, CHILD, FUNCTION, HELD, OVER, QUEUED, RECORDED, REPORTED, SIGNAL, Call, StepCall
from ._convert import check_name, printable
from ._loop import Branch, NameUse, where
from ._outbox import ASKS, Op
from ._waits import ChildrenCall, ChildState
from .errors import Coded, DecodeError, KagziError, error_detail
from .v1 import common_pb2 as common, workflow_pb2 as f

if TYPE_CHECKING:
    from ._run import Run

OWN = "kagzi:"
CANCEL_NAME = "kagzi:cancelled"
PATCHED = "kagzi:patched:"
_VERDICT = "kagzi:ended"


def end_call(run: Run, call: Call, how: int) -> None:
    if call.outcome != REPORTED or how == CANCELLED:
        call.outcome = how
    call.state, call.running = OVER, False
    call.unpark()
    call.set_working(False)
    run.open.pop(call, None)
    if call.name in run.names:
        run.names[call.name].in_flight = False


def hand(run: Run, call: Call, how: int) -> None:
    if call.state == OVER:
        return
    end_call(run, call, how)
    if call.kind == SIGNAL and how != CANCELLED and not call.abandoned:
        run.unreceived.discard(call.name)
    if call.future is not None and not call.future.done():
        call.future.set_result(None)


def queue(run: Run, call: Call, key: int, live: bool) -> None:
    if call.state in (OVER, QUEUED):
        return
    call.state = QUEUED
    call.set_working(False)
    # Of children whose ends one answer told, each has a place of its own.
    sub = max((c.step.settled for c in call.children if c.step), default=1) if isinstance(call, ChildrenCall) else 1
    heapq.heappush(run.results, (key, max(sub, 1), call.order, live, call))


def report(run: Run, call: Call, op: Op) -> None:
    """Queues the result that an operation recorded."""
    call.outcome = REPORTED
    queue(run, call, run.recorded + op.index, True)


def hand_next(run: Run) -> bool:
    """Hands over the next result; false if there is none."""
    if run.endings:
        hand(run, run.endings.pop(0), CANCELLED)
        return True
    if not deliverable(run):
        return False
    key, _, _, _, call = heapq.heappop(run.results)
    if call is None:
        run.current = run.cancel_key = key
        cancel_now(run)
    elif call.state != OVER:
        run.current = key
        hand(run, call, RECORDED)
    return True


def deliverable(run: Run) -> bool:
    if not run.results:
        return False
    key, _, _, live, _ = run.results[0]
    if not live:
        return True
    if (run.owing > 0 and run.held) or run.worker.always_suspend:
        return False
    if run.again:
        if run.ops and next(iter(run.ops)) <= run.again:
            return False  # the server may have recorded these in another order
        run.again = 0
        run.results = [(run.places.get(r[0], r[0]) if r[3] else r[0], *r[1:]) for r in run.results]
        heapq.heapify(run.results)
        key = run.results[0][0]
    if run.asking:
        for op in run.ops.values():
            if run.recorded + op.index >= key:
                return True
            if op.kind in ASKS:
                return False
    return True


def release(run: Run) -> None:
    """Lets held calls take effect once nothing is owed."""
    try_cancel(run)
    if run.owing > 0 or (run.cancelling and not run.cancelled):
        return
    held, run.held = run.held, []
    for call in held:
        run._activate(call)


def children_known(run: Run, call: ChildrenCall) -> bool:
    if any(c.step is None for c in call.children):
        return False
    key = max((c.key for c in call.children), default=0)
    if key == 0:
        hand(run, call, RECORDED)
    else:
        queue(run, call, key, any(c.live for c in call.children))
    return True


def known_at_cancel(run: Run, call: ChildrenCall) -> bool:
    """Whether all children had ended when the cancellation took effect; in a replay later ends may be known earlier."""
    return all(c.step is not None and run.places.get(c.key, c.key) <= run.places.get(run.cancel_key, run.cancel_key)
               for c in call.children)


def children_ended(run: Run, steps: Iterable[f.Step], asked: list[ChildState], op: Op) -> bool:
    """Takes the steps of children that have ended; false if there are none."""
    by_name = {s.name: s for s in steps}
    for c in asked:
        s = by_name.get(c.name)
        if s is not None and c.step is None:
            c.step, c.key, c.live = s, run.recorded + op.index, True
    for call in list(run.open):
        if isinstance(call, ChildrenCall) and call.state == ACTIVE and children_known(run, call):
            call.outcome = REPORTED
    return bool(by_name)


def ask_cancel(run: Run, until: float) -> bool:
    """Records that the run is being cancelled, and when its grace period ends; true the first time."""
    first = not run.cancel_asked
    run.cancel_asked, run.grace_until = True, until
    try_cancel(run)
    run.go()
    return first


def try_cancel(run: Run) -> None:
    """Records the cancellation, if it was asked for and the code owes nothing."""
    if not run.cancel_asked or run.cancelling or run.owing > 0 or run.quitted or run.closing:
        return
    if run.after_leaving(lambda: try_cancel(run)):
        return
    run.cancelling = True
    running = sorted(c.name for c in run.open if c.running and not c.clean)
    run.at_work = set(running)
    data = json.dumps({"running": running} if running else {}, separators=(",", ":")).encode()
    op = run.complete_own(CANCEL_NAME, "", common.Payload(data=data, metadata={"content-type": "application/json"}))
    heapq.heappush(run.results, (run.recorded + op.index, 0, (), True, None))


def read_cancel(run: Run, s: f.Step) -> None:
    try:
        run.at_work = set(json.loads(s.output.data).get("running", ()))
    except (ValueError, AttributeError, TypeError):
        run.at_work = set()  # no step counts as running
    run.cancel_asked = run.cancelling = True
    heapq.heappush(run.results, (s.settled, 0, (), False, None))


def cancel_now(run: Run) -> None:
    """Lets the cancellation take effect: it ends every sleep and wait, and every step whose code does not run."""
    run.cancelled = True
    for call in list(run.open):
        if call.clean or call.in_code or call.state == OVER:
            continue
        if call.kind == FUNCTION and (call.running or call.state == QUEUED):
            if isinstance(call, StepCall) and call.info is not None:
                call.info.cancelled = True
                if call.info.task is not None:
                    call.info.task.cancel()
            continue
        if call.name in run.at_work and call.kind == FUNCTION:
            fail_lost(run, call)
        else:
            run.endings.append(call)
    run.endings.sort(key=lambda c: c.order)
    run.held = [c for c in run.held if c.clean]
    run.release()
    run.start_bodies()


def ends_with(run: Run, call: Call) -> bool:
    """Whether the cancellation ends the call, although that may not be handed over yet."""
    return run.cancelled and not call.clean


def fail_lost(run: Run, call: Call) -> None:
    """Fails a step whose code ran when the cancellation was recorded, on a worker that has been lost since."""
    if call.state == HELD:
        run.held.remove(call)
    call.unpark()
    call.state, call.failing = ACTIVE, True
    call.set_working(True)
    run.starting = [c for c in run.starting if c is not call]
    call.failure = common.ErrorDetail(
        code=common.ERROR_CODE_CANCELLED, non_retryable=True, type="cancelled",
        message="the run was cancelled while the step ran on a worker that is lost")
    op = call.send("fail_step", lambda _: run.report(call, op), error=call.failure, started=run.now(), hold=True)


def lose(run: Run, d: common.ErrorDetail) -> None:
    """Drops a run that another worker has or that has ended. Whatever its code does no longer counts."""
    run.worker.log.info("lease of run %s lost; stopping its code: %s", run.task.run_id, printable(d.message))
    run.over("lost")


def read_record(run: Run, name: str, p: common.Payload, annotation: Any) -> Any:
    """Returns a recorded result; one that cannot be read fails the run."""
    try:
        return codec.decode(run.codec, p, run.payload_info("step", name), annotation)
    except KagziError as e:
        error = DecodeError(f"recorded result of step {name}: {e}", getattr(e, "path", ""), "unreadable")
        run.unreadable = run.unreadable or name
        run.fail(error_detail(error))
        raise error from e


def judge(run: Run, call: Call, d: common.ErrorDetail) -> None:
    """Records the outcome of a call that its own record does not show."""
    run.verdicts[call.name] = d
    run.verdict_count += 1
    name = _VERDICT if run.verdict_count == 1 else f"{_VERDICT}:{run.verdict_count}"
    run.send("fail_step", step_name=name, branch=call.branch.path, error=d, started=run.now(), hold=True)


def complete_own(run: Run, name: str, branch: str, p: common.Payload) -> Op:
    return run.send("complete_step", step_name=name, branch=branch, output=p, started=run.now())


def record(run: Run, branch: Branch, name: str, value: Callable[[], Any], annotation: Any = Any) -> Any:
    """Returns a value that is computed in place and recorded, also during a cancellation."""
    if run.quitted or run.closing or run.loop.dead:
        return value()
    if branch.path:
        name += "/" + branch.path
    name, recorded = claim(run, branch, name, FUNCTION, "")
    run.names[name].in_flight = False
    if recorded is not None and recorded.status == f.STEP_STATUS_COMPLETED:
        run.release()
        return run.read_record(name, recorded.output, annotation)
    if recorded is None:
        branch.write_lines()
    made = value()
    run.complete_own(name, branch.path, codec.encode(run.codec, made, run.payload_info("step", name)))
    run.release()
    return made


def remember(run: Run, s: f.Step) -> None:
    run.recorded = max(run.recorded, s.settled)
    name = s.name
    if name == _VERDICT or name.startswith(_VERDICT + ":"):
        run.verdict_count += 1
        if s.status == f.STEP_STATUS_FAILED and "step" in s.error.metadata:
            run.verdicts[s.error.metadata["step"]] = s.error
        return
    if name == CANCEL_NAME:
        read_cancel(run, s)
        return
    if s.settled < 0:  # no worker has been told its result yet
        s = _untold(s)
    run.history[name] = s
    if name.startswith(OWN):
        if not _is_true_patch(run, s):
            return
        run.own_left += 1
    elif (s.kind == SIGNAL and s.settled > 0 and not s.overridden_by and s.status == f.STEP_STATUS_COMPLETED
          and not s.signal_timed_out):
        run.unreceived.add(name)
    owed = run.worker.session.keeps_order and s.begun_in >= run.task.owed_from  # the code has to make the call
    run.uncalled[name] = owed
    run.owing += owed


def _is_true_patch(run: Run, s: f.Step) -> bool:
    rest = s.name.removeprefix(PATCHED)
    if rest == s.name:
        return False
    for removed in run.worker.removed_patches:
        after = rest.removeprefix(removed)
        if after != rest and (not after or after[0] in "/:"):
            return False
    try:
        return bool(codec.decode(run.codec, s.output, run.payload_info("step", s.name)))
    except KagziError:
        return False


def _untold(s: f.Step) -> f.Step:
    """Returns a step as the code knows it, if no worker has been told its result yet."""
    told = f.Step()
    told.CopyFrom(s)
    told.status, told.settled = f.STEP_STATUS_RUNNING, 0
    told.ClearField("output")
    told.ClearField("error")
    return told


def claim(run: Run, branch: Branch, written: str, kind: int, detail: str) -> tuple[str, f.Step | None]:
    """Takes a name for a call: returns the name under which it is recorded, and its record."""
    branch.tick()
    try:
        if written not in run.names:
            check_name("step", written)
        while True:
            name = _next_name(run, branch, written)
            record = run.history.get(name)
            if record is None or _matches(record, kind, detail):
                _made(run, name)
                if record is not None or name in run.verdicts:
                    final = name in run.verdicts or (record is not None and recorded_as(record, kind))
                    branch.lines.clear()
                    branch.replayed = final
                    branch.own_result = kind in (FUNCTION, CHILD)
                return name, record
            misfit = Coded(
                f"step {name} is recorded as {_parking.kind_name(record.kind)}, but the code now makes a "
                f"{_parking.kind_name(kind)}: this is not the code that the run started with", "nondeterministic")
            if not run.worker.session.keeps_order:
                raise misfit
            if run.uncalled.get(name):
                run.misfit = f.Call(name=name, kind=kind, branch=branch.path, detail=detail)  # type: ignore[arg-type]
                _parking.diverge(run)
                raise misfit
            _made(run, name)
            run.names[name].in_flight = False
    except KagziError as e:
        raise run.reject(e) from None


def _next_name(run: Run, branch: Branch, written: str) -> str:
    use, name = run.names.get(written), written
    if use is not None:
        if use.in_flight or not use.precedes(branch):
            raise _clash(written)
        use.branch, use.at = branch, branch.clock
        while True:
            use.count += 1
            name = f"{written}:{use.count}"
            other = run.names.get(name)
            if other is None:
                check_name("numbered step", name)
                break
            if other.in_flight or not other.precedes(branch):
                raise _clash(name)
    run.names[name] = NameUse(branch)
    return name


def _made(run: Run, name: str) -> None:
    owed = run.uncalled.pop(name, None)
    if owed is None:
        return
    if name.startswith(OWN):
        run.own_left -= 1
    if owed:
        run.owing -= 1


def _clash(name: str) -> Coded:
    return Coded(f"step name {name} is used by two branches at once, at {where()}; give each its own name, such as "
                 f"{name}-1 and {name}-2", "step_name_clash")


def _matches(s: f.Step, kind: int, detail: str) -> bool:
    if s.kind == f.STEP_KIND_UNSPECIFIED or s.kind not in f.StepKind.values():  # of a newer server
        return True
    return s.kind == kind and (not s.signal_name or s.signal_name == detail)


def recorded_as(s: f.Step, kind: int) -> bool:
    """Whether a call of that kind returns from the record. The start of a child does so while the child runs."""
    if s.status == f.STEP_STATUS_COMPLETED:
        return True
    if s.status == f.STEP_STATUS_FAILED:
        return s.error.code != common.ERROR_CODE_CRASHED or bool(s.child_run_id)
    return s.status == f.STEP_STATUS_RUNNING and kind == CHILD
