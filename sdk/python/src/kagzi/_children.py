"""Child runs, as workflow code starts them and waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from typing import Any, Generic, Literal, Unpack, cast, overload

from . import codec as codecs
from ._define import In, Out, Workflow, branch_of, cleaning
from ._details import encode_input, target
from ._waits import ChildCall, ChildrenCall, ChildState
from .errors import ConfigError, DecodeError, KagziError, RunError, code_name
from .policy import ChildOptions, StartOptions, start_request
from .v1 import common_pb2 as common
from .v1 import workflow_pb2 as f


class Child(Generic[Out]):
    """A child run that its parent can wait for: ``await child``, or ``await child.result()``."""

    def __init__(self, state: ChildState, type: Any) -> None:
        self._state, self._type = state, type
        self._task: asyncio.Task[Out] | None = None

    @property
    def run_id(self) -> str:
        """The child's run id."""
        return self._state.run_id

    def __await__(self) -> Generator[Any, None, Out]:
        return self.result().__await__()

    def _waiting(self) -> asyncio.Task[Out]:
        if self._task is None:
            self._task = asyncio.ensure_future(self.result())
        return self._task

    async def result(self) -> Out:
        """Waits until the child has ended and returns its result; may be called more than once.

        Raises:
            RunError: It ended without a result. One that continued as new has the result of its last run.
            Cancelled: The run is being cancelled.
        """
        await _ended([self])
        return self._outcome()

    def _outcome(self) -> Out:
        branch = branch_of("the wait for a child")
        run, state, step_ = branch.run, self._state, self._state.step
        assert step_ is not None
        if step_.status == f.STEP_STATUS_FAILED:
            d = step_.error
            raise RunError(d.metadata.get("child_run_id", "") or step_.child_run_id or state.run_id,
                           d.metadata.get("child_status", "") or "FAILED", d.message, type=d.type,
                           code=code_name(d.code), stack=d.stack, step=state.name, workflow_type=state.workflow_type,
                           external_id=state.external_id,
                           with_parent=bool(d.metadata.get("cancelled_with_parent", "")))
        if step_.overridden_by:
            return cast(Out, run.read_record(state.name, step_.output, self._type))
        metadata = dict(step_.output.metadata)
        owner = metadata.pop("child_run_id", "") or step_.child_run_id or state.run_id
        p = common.Payload(data=step_.output.data, metadata=metadata)
        try:
            return cast(Out, codecs.decode(run.codec, p, codecs.PayloadInfo("output", run_id=owner), self._type))
        except KagziError as e:
            raise run.reject(DecodeError(f"result of child {state.name}: {e}", getattr(e, "path", ""),
                                         "unreadable")) from e


async def _ended(children: list[Child[Any]]) -> None:
    branch = branch_of("the wait for children")
    await branch.run.make(ChildrenCall(branch.run, branch, [c._state for c in children], cleaning.get()))


async def wait_all(children: Iterable[Child[Out]]) -> list[Out]:
    """Waits until all children have ended, and returns their results in order. It wakes the run only once.

    Raises:
        RunError: One child ended without a result.
        ExceptionGroup: Several did; it has a RunError for each.
    """
    them = list(children)
    await _ended(them)
    outs, errors = [], []
    for c in them:
        try:
            outs.append(c._outcome())
        except RunError as e:
            errors.append(e)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(them)} children ended without a result", errors)
    return outs


_PARENT_CLOSE = {"abandon": common.PARENT_CLOSE_POLICY_ABANDON, "cancel": common.PARENT_CLOSE_POLICY_CANCEL,
                 "terminate": common.PARENT_CLOSE_POLICY_TERMINATE}


ParentClose = Literal["abandon", "cancel", "terminate"]


@overload
async def start_child(name: str, workflow: Workflow[In, Out], input: In = ..., *, id: str = ...,
                      parent_close: ParentClose = ..., **options: Unpack[ChildOptions]) -> Child[Out]: ...


@overload
async def start_child(name: str, workflow: str, input: Any = ..., *, id: str = ..., parent_close: ParentClose = ...,
                      type: Any = ..., **options: Unpack[ChildOptions]) -> Child[Any]: ...


async def start_child(name: str, workflow: Workflow[Any, Any] | str, input: Any = None, *, id: str = "",
                      parent_close: ParentClose = "abandon", type: Any = Any,
                      **options: Unpack[ChildOptions]) -> Child[Any]:
    """Starts a run as a child of this one; it returns when the start is on the server's disk.

    Args:
        name: Name of the step in this run; a replay returns the same child.
        workflow: A workflow, or the name of a type.
        input: Its input.
        id: External id; if an open run has it, the start fails with the code CONFLICT.
        parent_close: What happens to an open child when this run ends.
        type: Type of the result, if the workflow is given by its name (plain JSON).
        **options: See ChildOptions.

    Raises:
        StepError: The server refused the start; it has the server's code. Every replay raises the same.
        Cancelled: The run is being cancelled.
    """
    branch = branch_of(f"the start of child {name}")
    run = branch.run
    kind, queue, own = target(workflow)
    result = own if isinstance(workflow, Workflow) else type
    if parent_close not in _PARENT_CLOSE:
        raise ConfigError(f"parent_close is {parent_close!r}, want abandon, cancel or terminate")

    def request() -> dict[str, Any]:
        p = encode_input(run.codec, input, kind, id)
        start = start_request(run.task.namespace, kind, p, queue or run.task.task_queue, run.now(),
                              cast(StartOptions, {**options, "id": id, "reuse": "reject"}))
        start.parent_run_id = run.task.run_id
        return {"child": start, "parent_close_policy": _PARENT_CLOSE[parent_close]}

    state: ChildState = await run.make(ChildCall(run, branch, name, kind, request, cleaning.get()))
    state.workflow_type, state.external_id = kind, id
    return Child(state, result)


@overload
async def run_child(name: str, workflow: Workflow[In, Out], input: In = ..., *, id: str = ...,
                    parent_close: ParentClose = ..., **options: Unpack[ChildOptions]) -> Out: ...


@overload
async def run_child(name: str, workflow: str, input: Any = ..., *, id: str = ..., parent_close: ParentClose = ...,
                    type: Any = ..., **options: Unpack[ChildOptions]) -> Any: ...


async def run_child(name: str, workflow: Any, input: Any = None, *, id: str = "", parent_close: ParentClose = "abandon",
                    type: Any = Any, **options: Unpack[ChildOptions]) -> Any:
    """Calls start_child, and returns the child's result."""
    child = await start_child(name, workflow, input, id=id, parent_close=parent_close, type=type, **options)
    return await child.result()
