"""Kagzi: durable workflows. See README.md of the Python SDK for a guide."""

from ._aio import AsyncClient, AsyncRun, AsyncSchedule
from ._api import (
    First,
    as_completed,
    attempt,
    cancelled,
    cleanup,
    continue_as_new,
    first,
    grace_until,
    idempotency_key,
    info,
    logger,
    note,
    now,
    patched,
    random,
    sleep,
    sleep_until,
    step_cancelled,
    uuid,
    wait_signal,
)
from ._blocking import Client, Run, Schedule
from ._contract import Explanation, RunInfo, ScheduleDetails
from ._define import Step, Workflow, do, step, workflow
from ._details import ListFilters, RunDetails, ScheduleChanges, ScheduleOptions
from ._intercept import Activation, ClientCall, ClientInterceptor, Interceptor, StepAttempt
from ._replay import Divergence, replay_capsule
from ._version import __version__
from ._waits import Child, run_child, start_child, wait_all
from ._wire import TLS
from .codec import AESCodec, Codec, Payload, PayloadInfo
from .errors import (
    Cancelled,
    ConfigError,
    Conflict,
    DecodeError,
    Failed,
    InvalidArgument,
    KagziError,
    Misuse,
    NonRetryable,
    NotFound,
    PreconditionFailed,
    ResourceExhausted,
    RetryAfter,
    RunError,
    ServerError,
    StepError,
    TimedOut,
    Unauthorized,
    Unavailable,
)
from .policy import ChildOptions, Retry, StartOptions
from .worker import Worker, serve

__all__ = [
    "AESCodec", "Activation", "AsyncClient", "AsyncRun", "AsyncSchedule", "Cancelled", "Child", "ChildOptions",
    "Client", "ClientCall", "ClientInterceptor", "Codec", "ConfigError", "Conflict", "DecodeError", "Divergence",
    "Explanation", "Failed", "First", "Interceptor", "InvalidArgument", "KagziError", "ListFilters", "Misuse",
    "NonRetryable", "NotFound", "Payload", "PayloadInfo", "PreconditionFailed", "ResourceExhausted", "Retry",
    "RetryAfter", "Run", "RunDetails", "RunError", "RunInfo", "Schedule", "ScheduleChanges", "ScheduleDetails",
    "ScheduleOptions", "ServerError", "StartOptions", "Step", "StepAttempt", "StepError", "TLS", "TimedOut",
    "Unauthorized", "Unavailable", "Worker", "Workflow", "as_completed", "attempt", "cancelled", "cleanup",
    "continue_as_new", "do", "first", "grace_until", "idempotency_key", "info", "logger", "note", "now", "patched",
    "random", "replay_capsule", "run_child", "serve", "sleep", "sleep_until", "start_child", "step", "step_cancelled",
    "__version__", "uuid", "wait_all", "wait_signal", "workflow",
]
