"""Interceptors wrap code of the application, and calls of clients, in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Activation:
    """One begin of a workflow function.

    Attributes:
        run_id: Of the run.
        workflow_type: Its type.
        attempt: Of the run, from 1.
        replays: Something was recorded before.
        check: The run is only checked, or a capsule is replayed: nothing of it counts.
    """

    run_id: str
    workflow_type: str
    attempt: int
    replays: bool
    check: bool


@dataclass(frozen=True)
class StepAttempt:
    """One attempt of a step's code: its run, the recorded name of the step, and its number, from 1."""

    run_id: str
    workflow_type: str
    step: str
    attempt: int


class Interceptor:
    """Wraps workflow functions and code of steps; override what you need. It cannot turn a failure into a success."""

    async def run(self, activation: Activation, next: Callable[[], Awaitable[Any]]) -> Any:
        """Wraps a workflow function, in each of its activations: it is workflow code.

        What follows ``await next()`` runs when the function has ended, not when the run is parked.
        """
        return await next()

    def step(self, attempt: StepAttempt) -> AbstractContextManager[Any]:
        """Returns what is entered around an attempt of a step's code, in its thread; never in a replay."""
        return nullcontext()


@dataclass(frozen=True)
class ClientCall:
    """A call of a client: its method, such as ``StartWorkflow``, and its request.

    Attributes:
        metadata: gRPC metadata to send with it; interceptors may append.
    """

    method: str
    request: Any
    metadata: list[tuple[str, str]]


ClientInterceptor: TypeAlias = Callable[[ClientCall], AbstractContextManager[Any]]
"""Returns what is entered around a call, however often the SDK repeats it."""
