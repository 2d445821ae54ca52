"""Workflows and steps: what the decorators make, and how workflow code calls a step."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from . import _data
from ._calls import StepCall, step_info
from ._convert import Duration, check_name, seconds
from ._loop import Branch, current, where
from .errors import ConfigError, Misuse
from .policy import Retry

P = ParamSpec("P")
T = TypeVar("T")
In = TypeVar("In")
Out = TypeVar("Out")
cleaning: contextvars.ContextVar[bool] = contextvars.ContextVar("kagzi_cleanup", default=False)


def branch_of(what: str) -> Branch:
    """Returns the branch of the workflow code that calls; raises Misuse if it is not workflow code."""
    branch = current.get()
    if branch is not None:
        return branch
    info = step_info.get()
    if info is None:
        raise Misuse(f"{what} is called outside of workflow code, at {where()}")
    error = Misuse(f"{what} is called inside step {info.name}, at {where()}: call it from workflow code, before or "
                   "after the step")
    error.kind = "within_step"
    info.run.worker.loop.call_soon_threadsafe(info.run.misused, error)
    raise error


class Workflow(Generic[In, Out]):
    """A workflow type: its function, name, queue and types. ``@kagzi.workflow`` makes one."""

    def __init__(self, fn: Callable[..., Any], name: str, queue: str) -> None:
        functools.update_wrapper(self, fn)
        self.fn, self.name, self.queue = fn, check_name("workflow type", name), queue
        if not inspect.iscoroutinefunction(fn):
            raise ConfigError(f"workflow {name}: its function must be async")
        parameters = [p for p in inspect.signature(fn).parameters.values() if p.kind is not p.VAR_KEYWORD]
        if len(parameters) > 1:
            raise ConfigError(f"workflow {name}: its function takes {len(parameters)} parameters, want one input or "
                              "none; put several values into a dataclass")
        hints = _data.signature(fn)
        self.takes_input = bool(parameters)
        self.input_type = hints.get(parameters[0].name, Any) if parameters else type(None)
        self.output_type = hints.get("return", Any)

    def __repr__(self) -> str:
        return f"<kagzi workflow {self.name}>"

    async def __call__(self, *args: Any) -> Out:
        """Starts it as a child under its own name, and returns its result; only in workflow code."""
        from ._waits import run_child

        made: Any = run_child(self.name, self, *args)
        return cast(Out, await made)


@overload
def workflow(fn: Callable[[In], Coroutine[Any, Any, Out]], /) -> Workflow[In, Out]: ...


@overload
def workflow(fn: Callable[[], Coroutine[Any, Any, Out]], /) -> Workflow[None, Out]: ...


@overload
def workflow(*, name: str = "", queue: str = "") -> _WorkflowMaker: ...


def workflow(fn: Any = None, /, *, name: str = "", queue: str = "") -> Any:
    """Makes an async function a workflow: ``@kagzi.workflow`` or ``@kagzi.workflow(queue="orders")``.

    The function takes one input or none. It must be deterministic: with the same input and results it makes the same
    calls. Its loop has no clock, threads or sockets; do such work in steps.

    Args:
        fn: The function.
        name: Name of the type, 1 to 255 characters of A-Z a-z 0-9 . _ : / - (the function's).
        queue: Task queue of starts and of workers that serve it (``default``).
    """
    if fn is not None:
        return Workflow(fn, name or fn.__name__, queue)
    return lambda fn: Workflow(fn, name or fn.__name__, queue)


class _WorkflowMaker:
    @overload
    def __call__(self, fn: Callable[[In], Coroutine[Any, Any, Out]], /) -> Workflow[In, Out]: ...

    @overload
    def __call__(self, fn: Callable[[], Coroutine[Any, Any, Out]], /) -> Workflow[None, Out]: ...

    def __call__(self, fn: Any, /) -> Any: ...


class Step(Generic[P, T]):
    """A function whose results are recorded when workflow code calls it. ``@kagzi.step`` makes one."""

    def __init__(self, fn: Callable[..., Any], name: str, retry: Retry | None, timeout: Duration | None) -> None:
        functools.update_wrapper(self, fn)
        self.fn, self.name, self.retry, self.timeout = fn, name, retry, timeout
        check_name("step", name)
        if retry is not None:
            retry.wire()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """In workflow code: a durable step. Elsewhere it runs the function, without a record."""
        if current.get() is None and step_info.get() is None:
            return self._plainly(*args, **kwargs)
        return cast("Coroutine[Any, Any, T]", _step(self.name, functools.partial(self.fn, *args, **kwargs), self.fn,
                                                    self.retry, self.timeout))

    def named(self, name: str) -> Step[P, T]:
        """Returns the same step under another name, such as ``reserve/SKU``."""
        return Step(self.fn, name, self.retry, self.timeout)

    async def _plainly(self, *args: Any, **kwargs: Any) -> T:
        made = self.fn(*args, **kwargs)
        return cast(T, await made if inspect.isawaitable(made) else made)


@overload
def step(fn: Callable[P, Coroutine[Any, Any, T]], /) -> Step[P, T]: ...


@overload
def step(fn: Callable[P, T], /) -> Step[P, T]: ...


@overload
def step(*, name: str = "", retry: Retry | None = None, timeout: Duration | None = None) -> _StepMaker: ...


def step(fn: Any = None, /, *, name: str = "", retry: Retry | None = None, timeout: Duration | None = None) -> Any:
    """Makes a function a step: ``@kagzi.step`` or ``@kagzi.step(retry=kagzi.Retry(attempts=5))``.

    A sync function runs in a thread, an async one on the worker's loop. It runs again when it failed and the retry
    policy allows another attempt, and when its result could not be recorded because the worker died: pass
    ``kagzi.idempotency_key()`` to external systems to make that safe.

    Args:
        fn: The function.
        name: Name in the run, 1 to 255 characters of A-Z a-z 0-9 . _ : / - (the function's). A later use of the name
            becomes ``name:2``; used by two branches at once it fails the run.
        retry: (The run's step_retry, else 3 attempts.)
        timeout: Of one attempt, from the start of the function, in seconds or as a timedelta (the run's, else 600 s).
    """
    if fn is not None:
        return Step(fn, name or fn.__name__, retry, timeout)
    return lambda fn: Step(fn, name or fn.__name__, retry, timeout)


class _StepMaker:
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, T]], /) -> Step[P, T]: ...

    @overload
    def __call__(self, fn: Callable[P, T], /) -> Step[P, T]: ...

    def __call__(self, fn: Any, /) -> Any: ...


@overload
async def do(name: str, fn: Callable[..., Coroutine[Any, Any, T]], /, *args: Any, retry: Retry | None = None,
             timeout: Duration | None = None) -> T: ...


@overload
async def do(name: str, fn: Callable[..., T], /, *args: Any, retry: Retry | None = None,
             timeout: Duration | None = None) -> T: ...


async def do(name: str, fn: Callable[..., Any], /, *args: Any, retry: Retry | None = None,
             timeout: Duration | None = None) -> Any:
    """Runs a function as a step with a name, and returns its result: ``await kagzi.do("refund", bank.refund, ref)``.

    The result is read as the function's annotation says; without one, as plain JSON. See step for the rest.

    Args:
        name: Name in the run.
        fn: A function, sync or async, or a Step.
        *args: Its arguments. Use a lambda or functools.partial for keyword arguments.
        retry: As in step.
        timeout: As in step.

    Raises:
        StepError: The step failed for good.
        TimedOut: Its last attempt timed out.
        Cancelled: The run is being cancelled.
    """
    code = fn.fn if isinstance(fn, Step) else fn
    if isinstance(fn, Step):
        retry, timeout = retry or fn.retry, timeout if timeout is not None else fn.timeout
    return await _step(name, functools.partial(code, *args), code, retry, timeout)


_facts: weakref.WeakKeyDictionary[Any, tuple[bool, Any]] = weakref.WeakKeyDictionary()


def _facts_of(fn: Any) -> tuple[bool, Any]:
    """Returns whether code of a step is async, and the type of its result; to read annotations again takes long."""
    fn = getattr(fn.func if isinstance(fn, functools.partial) else fn, "__func__", fn)
    try:
        return _facts[fn]
    except (KeyError, TypeError):  # new, or it can have no weak reference
        pass
    called = getattr(fn, "__call__", None)  # noqa: B004
    facts = (inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(called),
             _data.signature(fn).get("return", Any) if getattr(fn, "__annotations__", None) else Any)
    with contextlib.suppress(TypeError):
        _facts[fn] = facts
    return facts


async def _step(name: str, call: functools.partial[Any], fn: Callable[..., Any], retry: Retry | None,
                timeout: Duration | None) -> Any:
    branch = current.get() or branch_of(f"step {name}")
    run, limit, policy = branch.run, 0.0, None
    try:
        if timeout is not None:
            limit = seconds(timeout, f"timeout of step {name}")
            if limit <= 0:
                raise ConfigError(f"timeout of step {name} is {limit:g} s, want more than 0")
        if retry is not None:
            policy = retry.wire()
    except ConfigError as e:
        raise run.reject(e) from None
    is_async, result = _facts_of(fn)
    return await run.make(StepCall(run, branch, name, call, is_async, result, policy, limit, cleaning.get()))
