"""Exceptions of the SDK, and their conversion to and from what is recorded."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2
from google.protobuf.unknown_fields import UnknownFieldSet

from ._convert import MAX_ERROR_TEXT, MAX_ERROR_TYPE, Duration, clean_text, enum_name, seconds
from .v1 import common_pb2 as common

_PREFIX = "ERROR_CODE_"


class KagziError(Exception):
    """Base of all exceptions of this package."""


class ConfigError(KagziError, ValueError):
    """An option, an environment variable or the profile is invalid. The text names it."""


class DecodeError(KagziError, ValueError):
    """A payload does not fit its annotation.

    Attributes:
        path: The field that does not fit, such as ``items[2].sku``; empty for the whole value.
    """

    kind = ""  # "unreadable": what is recorded cannot be read

    def __init__(self, message: str, path: str = "", kind: str = "") -> None:
        super().__init__(message)
        self.path, self.kind = path, kind


class ServerError(KagziError):
    """A refusal by the server, or a failure to reach it.

    Attributes:
        code: Such as ``NOT_FOUND``, ``INVALID_ARGUMENT``, ``CONFLICT``, ``UNAVAILABLE``.
        message: What is wrong; it names the field.
        subject: What the error is about: ``run``, ``worker``, ``schedule``, ``namespace``.
        subject_id: Its id.
        metadata: Further facts, such as ``status`` of the run and ``continued_as_run_id``.
        status: The gRPC status code.
    """

    def __init__(self, message: str, code: str = "", *, subject: str = "", subject_id: str = "",
                 metadata: Mapping[str, str] | None = None, status: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code, self.message, self.subject, self.subject_id = code, message, subject, subject_id
        self.metadata, self.status = dict(metadata or {}), status

    @property
    def field(self) -> str:
        """The field of the request that the server refused; empty if the refusal is not about one."""
        return self.metadata.get("field", "")


class NotFound(ServerError):
    """There is no such run, schedule, worker or namespace."""


class InvalidArgument(ServerError):
    """A value is outside of its limits. The message names the field and the limit."""


class Conflict(ServerError):
    """An id or name is taken, or a request id was used with other content."""


class PreconditionFailed(ServerError):
    """The run or schedule is not in a state that allows the call."""


class Unauthorized(ServerError):
    """The API key is missing, invalid or lacks the permission."""


class Unavailable(ServerError):
    """The server cannot be reached, or cannot serve the call now."""


class ResourceExhausted(ServerError):
    """A limit of size or number is exceeded, or the disk is full."""


_CLASSES: dict[str, type[ServerError]] = {
    "NOT_FOUND": NotFound, "INVALID_ARGUMENT": InvalidArgument, "CONFLICT": Conflict,
    "PRECONDITION_FAILED": PreconditionFailed, "UNAUTHORIZED": Unauthorized, "UNAVAILABLE": Unavailable,
    "RESOURCE_EXHAUSTED": ResourceExhausted,
}

_CODE_OF_STATUS = {
    grpc.StatusCode.NOT_FOUND: "NOT_FOUND", grpc.StatusCode.INVALID_ARGUMENT: "INVALID_ARGUMENT",
    grpc.StatusCode.OUT_OF_RANGE: "INVALID_ARGUMENT", grpc.StatusCode.FAILED_PRECONDITION: "PRECONDITION_FAILED",
    grpc.StatusCode.ALREADY_EXISTS: "CONFLICT", grpc.StatusCode.UNAUTHENTICATED: "UNAUTHORIZED",
    grpc.StatusCode.PERMISSION_DENIED: "UNAUTHORIZED", grpc.StatusCode.UNAVAILABLE: "UNAVAILABLE",
    grpc.StatusCode.DEADLINE_EXCEEDED: "TIMEOUT", grpc.StatusCode.CANCELLED: "CANCELLED",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "RESOURCE_EXHAUSTED",
}


class Failed(KagziError):
    """An error of the application, for steps and workflows. Other exceptions work as well.

    Args:
        message: What went wrong.
        type: Its type, such as ``card_declined``. Retry policies and callers match errors by it.
        retryable: False if no further attempt can succeed.
        retry_after: Delay before the next attempt in seconds, instead of the policy's.
    """

    def __init__(self, message: str, *, type: str = "", retryable: bool = True,
                 retry_after: Duration | None = None) -> None:
        super().__init__(message)
        self.type, self.retryable, self.retry_after = type, retryable, retry_after


class NonRetryable(Failed):
    """An error that is final: the step, or the run, fails without another attempt."""

    def __init__(self, message: str, *, type: str = "") -> None:
        super().__init__(message, type=type, retryable=False)


class RetryAfter(Failed):
    """An error that sets the delay before the next attempt. It does not allow more attempts."""

    def __init__(self, message: str, delay: Duration, *, type: str = "") -> None:
        super().__init__(message, type=type, retry_after=delay)


class StepError(KagziError):
    """A step failed for good. It has only what is recorded, so every replay raises the same.

    Attributes:
        step: Name of the step.
        type: Type of the error: that of ``Failed``, or the attribute ``kagzi_type`` of another exception; else empty.
        message: Its text.
        code: ``TIMEOUT``, ``CANCELLED``, the code of a refusal, or empty for errors of the step's code.
        attempts: Number of attempts.
    """

    def __init__(self, step: str, message: str, *, type: str = "", code: str = "", attempts: int = 0,
                 non_retryable: bool = False) -> None:
        named = f"step {step}"
        super().__init__(message if message.startswith(named + " ") else f"{named}: {message}")
        self.step, self.message, self.type, self.code = step, message, type, code
        self.attempts, self.non_retryable = attempts, non_retryable


class TimedOut(StepError):
    """A step timed out, or the limit of a wait has passed."""


class Cancelled(StepError):
    """The run is being cancelled, which ended or prevented the call. ``kagzi.cleanup`` allows calls again."""


class RunError(KagziError):
    """A run ended without a result.

    Attributes:
        run_id: Its id.
        status: ``FAILED``, ``CANCELLED``, ``TIMED_OUT`` or ``TERMINATED``.
        type: Type of the error, as in StepError.
        message: Its text.
        code: What ended the run, such as ``TIMEOUT``; empty for errors of its code.
        stack: The stack of the code's exception, if it is known.
        step: Of a child: the step under which the parent started it.
        workflow_type: Of a child: its type.
        external_id: Of a child: its external id.
        with_parent: Of a child: it was cancelled because its parent is being cancelled.
    """

    def __init__(self, run_id: str, status: str, message: str, *, type: str = "", code: str = "", stack: str = "",
                 step: str = "", workflow_type: str = "", external_id: str = "", with_parent: bool = False) -> None:
        text = f"run {run_id}"
        if step:
            external = f"external id {external_id}, " if external_id else ""
            text = f"child {step} of type {workflow_type} ({external}run {run_id})"
        text += " " + status.lower().replace("_", " ")
        super().__init__(f"{text}: {message}" if message else text)
        self.run_id, self.status, self.message, self.type, self.code = run_id, status, message, type, code
        self.stack, self.step, self.workflow_type = stack, step, workflow_type
        self.external_id, self.with_parent = external_id, with_parent


class Misuse(KagziError):
    """Workflow code did what only code of steps may do. The run fails; the text says what to write instead."""

    kind = ""  # "within_step": a call inside a step


class ContinueAsNew(BaseException):
    """Raised by kagzi.continue_as_new to end the run; the workflow function must let it pass."""


def code_name(code: int) -> str:
    """Returns the name of an error code; empty for an error of the application's own code."""
    return enum_name(common.ErrorCode, code, _PREFIX) if code != common.ERROR_CODE_UNSPECIFIED else ""


def code_number(name: str) -> int:
    """Returns the number of an error code, 0 for an unknown name."""
    return int(common.ErrorCode.Value(_PREFIX + name)) if _PREFIX + name in list(common.ErrorCode.keys()) else 0


def detail_error(d: common.ErrorDetail, status: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> ServerError:
    """Returns the exception of a refusal."""
    code = code_name(d.code)
    return _CLASSES.get(code, ServerError)(d.message, code, subject=d.subject, subject_id=d.subject_id,
                                           metadata=d.metadata, status=status)


def call_error(e: grpc.RpcError) -> ServerError:
    """Returns the exception of a failed gRPC call."""
    call: Any = e
    status, text = call.code(), call.details() or ""
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for one in _details(value):
                if one.type_url.endswith("/kagzi.v1.ErrorDetail"):
                    return detail_error(common.ErrorDetail.FromString(one.value), status)
    if status is grpc.StatusCode.UNAVAILABLE:
        text = f"no answer from the server: {text}; check that a server runs there (kagzi server), and the address"
    elif status is grpc.StatusCode.UNIMPLEMENTED:
        text = f"the server does not offer this: {text}; it may be older than this program"
    code = _CODE_OF_STATUS.get(status, "INTERNAL")
    return _CLASSES.get(code, ServerError)(text, code, status=status)


def _details(data: bytes) -> list[any_pb2.Any]:
    """Returns the details of a google.rpc.Status, a message that this package does not otherwise need."""
    fields: Any = UnknownFieldSet(empty_pb2.Empty.FromString(data))
    return [any_pb2.Any.FromString(one.data) for one in fields if one.field_number == 3]


def error_type(e: BaseException) -> str:
    """Returns the type under which an exception is recorded: one that the application gave, never the class's name.

    Exceptions of the application's own may have it as the attribute ``kagzi_type``.
    """
    if isinstance(e, Failed | StepError | RunError):
        return e.type
    own = getattr(e, "kagzi_type", "")
    return own if isinstance(own, str) else ""


def error_detail(e: BaseException, *, stack: bool = True) -> common.ErrorDetail:
    """Converts an exception to the form in which it is recorded."""
    d = common.ErrorDetail()
    try:
        d.message = clean_text(str(e) or type(e).__name__, MAX_ERROR_TEXT)
        d.type = clean_text(error_type(e), MAX_ERROR_TYPE)
        if isinstance(e, Failed):
            d.non_retryable = not e.retryable
            if e.retry_after is not None:
                d.retry_after_ms = max(1, int(seconds(e.retry_after, "retry_after") * 1000))
        elif isinstance(e, StepError):
            d.non_retryable = e.non_retryable
            d.code = 0 if e.code == "CRASHED" else code_number(e.code)  # type: ignore[assignment]
        elif isinstance(e, RunError):
            d.code = code_number(e.code)  # type: ignore[assignment]
        elif isinstance(e, ContinueAsNew):
            d.message, d.type, d.non_retryable = "continue_as_new has no effect here", "continue_as_new", True
        elif isinstance(e, DecodeError | Misuse | ConfigError):
            d.non_retryable, d.type = True, _KINDS.get(getattr(e, "kind", ""), "")
        if not isinstance(e, Exception | asyncio.CancelledError | ContinueAsNew):
            says = f"sys.exit({e.code!r})" if isinstance(e, SystemExit) else str(e)
            d.message, d.type = clean_text(f"{type(e).__name__}: {says}", MAX_ERROR_TEXT), "panic"
        if isinstance(e, Coded):
            d.code, d.type, d.non_retryable = code_number(e.code), e.kind, e.final  # type: ignore[assignment]
        elif stack and not isinstance(e, KagziError):
            d.stack = clean_text(_stack(e), MAX_ERROR_TEXT)
    except Exception as bad:  # a method of the user's exception raises
        d.message = f"a {type(e).__name__}, whose text cannot be had: {type(bad).__name__}"
    return d


_KINDS = {kind: kind for kind in ("unreadable", "within_step")}
_OWN = tuple(os.path.join(os.path.dirname(file), "") for file in (__file__, asyncio.__file__))


def _stack(e: BaseException) -> str:
    """Returns the stack of an exception, without the SDK's frames that called the code of the application."""
    at = e.__traceback__
    while at is not None and at.tb_frame.f_code.co_filename.startswith(_OWN):
        at = at.tb_next
    return "".join(traceback.format_exception(type(e), e, at or e.__traceback__))


class Coded(KagziError):
    """An error that the SDK itself records."""

    def __init__(self, text: str, kind: str = "", code: str = "", *, final: bool = True) -> None:
        super().__init__(text)
        self.kind, self.code, self.final = kind, code, final


def step_error(step: str, d: common.ErrorDetail, attempts: int) -> StepError:
    """Returns the exception of a step that has failed for good."""
    code = code_name(d.code)
    cls = {"TIMEOUT": TimedOut, "CANCELLED": Cancelled}.get(code, StepError)
    return cls(step, d.message, type=d.type, code=code, attempts=attempts, non_retryable=d.non_retryable)


def cancelled_error(step: str, last: common.ErrorDetail | None = None, attempts: int = 0) -> Cancelled:
    """Returns the exception of a call that the cancellation ended. last is the failure of its last attempt."""
    text = "the run is being cancelled"
    if last is not None and last.message:
        text += "; last error: " + last.message
    return Cancelled(step, text, type=last.type if last is not None else "", code="CANCELLED", attempts=attempts,
                     non_retryable=True)


def lease_gone(d: common.ErrorDetail) -> bool:
    """Whether a refusal means that the worker no longer holds the run."""
    return d.code in (common.ERROR_CODE_LEASE_LOST, common.ERROR_CODE_NOT_FOUND, common.ERROR_CODE_CANCELLED,
                      common.ERROR_CODE_UNAUTHORIZED)


def repeatable(d: common.ErrorDetail) -> bool:
    """Whether a refusal leaves open if the operation counted."""
    if d.code == common.ERROR_CODE_RESOURCE_EXHAUSTED:
        return not d.non_retryable  # a full disk passes, a limit does not
    return d.code in (common.ERROR_CODE_UNAVAILABLE, common.ERROR_CODE_INTERNAL, common.ERROR_CODE_TIMEOUT)
