"""OpenTelemetry, if the application has it: spans of activations and steps, and the trace context of starts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .errors import error_type

if TYPE_CHECKING:
    from ._run import Run

try:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    _trace: Any = None
else:
    _trace, _context, _propagator = trace, context, TraceContextTextMapPropagator()


def traceparent() -> str:
    """Returns the current trace context in its W3C form; empty if there is none."""
    carrier: dict[str, str] = {}
    if _trace is not None:
        _propagator.inject(carrier)
    return carrier.get("traceparent", "")


def activation(run: Run) -> Any:
    """Starts the span of one activation of a run, a child of the span that started the run; None without tracing."""
    if _trace is None:
        return None
    task = run.task
    parent = _propagator.extract({"traceparent": task.traceparent}, _context.Context())
    span = _trace.get_tracer("kagzi").start_span(
        f"workflow {task.workflow_type}", parent, _trace.SpanKind.CONSUMER,
        {"kagzi.run_id": task.run_id, "kagzi.workflow_type": task.workflow_type, "kagzi.namespace": task.namespace,
         "kagzi.queue": task.task_queue, "kagzi.attempt": task.attempt})
    return span if span.is_recording() else None


def end(span: Any, outcome: str) -> None:
    if span is not None:
        span.set_attribute("kagzi.outcome", outcome)
        span.end()


@contextlib.contextmanager
def step(span: Any, name: str, attempt: int) -> Iterator[None]:
    """Is entered around an attempt of a step's code: its span is the current one. It has the error's type, not text."""
    with _trace.get_tracer("kagzi").start_as_current_span(
            f"step {name}", _trace.set_span_in_context(span, _context.Context()), record_exception=False,
            set_status_on_exception=False, attributes={"kagzi.step": name, "kagzi.attempt": attempt}) as one:
        try:
            yield
        except BaseException as e:
            one.set_status(_trace.Status(_trace.StatusCode.ERROR, error_type(e) or "error"))
            raise
