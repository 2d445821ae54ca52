"""Names the step whose code starts a run as the run's parent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._calls import StepInfo, step_info
from .errors import Misuse
from .v1 import workflow_pb2 as f

if TYPE_CHECKING:
    from ._profile import Endpoint


def _parent(requests: Sequence[f.StartWorkflowRequest], endpoint: Endpoint) -> StepInfo | None:
    """Returns the step whose code makes starts, if it is one of the same server and namespace."""
    at = step_info.get()
    if at is None or not requests:
        return None
    of = at.run.worker.endpoint
    return at if (of.address, of.namespace) == (endpoint.address, endpoint.namespace) else None


def _set_parent(requests: Sequence[f.StartWorkflowRequest], at: StepInfo, step_id: str) -> None:
    for r in requests:
        r.parent_run_id, r.parent_step_id = at.run.task.run_id, step_id


async def parent_of_async(requests: Sequence[f.StartWorkflowRequest], endpoint: Endpoint) -> None:
    """Names in starts the step whose code makes them."""
    at = _parent(requests, endpoint)
    if at is not None:
        on = asyncio.run_coroutine_threadsafe(at.announced(), at.run.worker.loop)
        _set_parent(requests, at, await asyncio.wrap_future(on))


def parent_of(requests: Sequence[f.StartWorkflowRequest], endpoint: Endpoint) -> None:
    """Is parent_of_async for code that blocks."""
    at = _parent(requests, endpoint)
    if at is not None:
        if at.task is not None:
            raise Misuse("async code of a step cannot start runs by a client that blocks: use AsyncClient")
        on = asyncio.run_coroutine_threadsafe(at.announced(), at.run.worker.loop)
        _set_parent(requests, at, on.result())
