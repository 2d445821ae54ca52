"""Options that steps, runs, children and schedules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict

from ._convert import MAX_DELAY, MAX_ERROR_TYPE, Duration, seconds, stamp, whole_ms, wire_duration, wire_time
from .errors import ConfigError
from .v1 import common_pb2 as common, workflow_pb2 as f, workflow_schedule_pb2 as s


@dataclass(frozen=True)
class Retry:
    """A retry policy. Only failures of the code count as attempts; sleeps, drains and lost workers do not.

    The delay after the n-th failure is min(initial * coefficient^(n-1), max), plus a random part of up to jitter of it.

    Args:
        attempts: Including the first; 1 means no retry, -1 no limit (3).
        initial: Delay after the first failure, in seconds or as a timedelta (1 s).
        max: Longest delay (60 s).
        coefficient: At least 1 (2).
        jitter: 0 to 1; a negative value means none (0.1).
        non_retryable: Errors that are final: an entry matches an error's type or the start of its message. At most 64
            entries of up to 255 bytes.
    """

    attempts: int = 0
    initial: Duration = 0.0
    max: Duration = 0.0
    coefficient: float = 0.0
    jitter: float = 0.0
    non_retryable: tuple[str, ...] | list[str] = ()

    def wire(self) -> common.RetryPolicy:
        """Returns the policy for the wire; raises ConfigError if a value is out of its range."""
        if not (isinstance(self.attempts, int) and -1 <= self.attempts <= 10_000):
            raise ConfigError(f"Retry.attempts is {self.attempts!r}, want 1 to 10000, or -1 for no end")
        for name, value in (("initial", self.initial), ("max", self.max)):
            if not 0 <= seconds(value, f"Retry.{name}") <= MAX_DELAY:
                raise ConfigError(f"Retry.{name} is {value!r}, want 0 to 10 years")
        if self.coefficient and not 1 <= self.coefficient <= 1e9:
            raise ConfigError(f"Retry.coefficient is {self.coefficient!r}, want 1 to 1e9")
        if not self.jitter <= 1:
            raise ConfigError(f"Retry.jitter is {self.jitter!r}, want 0 to 1, or less than 0 for none")
        if isinstance(self.non_retryable, str) or len(self.non_retryable) > 64:
            raise ConfigError(f"Retry.non_retryable is {self.non_retryable!r:.100}, want a list of at most 64 entries")
        for n, entry in enumerate(self.non_retryable):
            if not isinstance(entry, str) or "\x00" in entry or len(entry.encode("utf-8", "replace")) > MAX_ERROR_TYPE:
                raise ConfigError(f"Retry.non_retryable[{n}] is {entry!r:.300}, want text of at most 255 bytes")
        return common.RetryPolicy(
            maximum_attempts=self.attempts, initial_interval_ms=whole_ms(self.initial, "Retry.initial"),
            backoff_coefficient=self.coefficient, maximum_interval_ms=whole_ms(self.max, "Retry.max"),
            non_retryable_errors=self.non_retryable, jitter=max(self.jitter, -1.0))


def policies(o: Mapping[str, Any]) -> tuple[common.RetryPolicy | None, common.RetryPolicy | None]:
    """Returns retry_policy and run_retry_policy of a request, for options of a start or a schedule.

    ``retry`` stands in for ``step_retry`` and ``run_retry``. A server applies a policy of steps that comes alone to
    the run, too, so without run_retry a step_retry is sent with one attempt of the run.
    """
    both = o.get("retry")
    steps, run = o.get("step_retry") or both, o.get("run_retry") or both
    of_steps = steps.wire() if steps is not None else None
    if run is None:
        return of_steps, common.RetryPolicy(maximum_attempts=1) if steps is not None else None
    return of_steps, run.wire() if run is not steps else None


class RunPolicies(TypedDict, total=False):
    """Options of runs, also of those that schedules start.

    queue: Task queue (that of the workflow, of the parent, or ``default``).
    version: Of the code, shown and returned by info.
    step_retry: Policy of steps without their own (3 attempts).
    run_retry: Policy of the run itself: when its function has failed, it is called again (not retried).
    retry: Deprecated: stands in for each of the two that is not set.
    step_timeout: Of one attempt of a step, in seconds or as a timedelta (600 s).
    heartbeat_timeout: Lease between heartbeats, if longer than the server's.
    execution_timeout: Of the whole run, from start_at.
    tags: Searchable.
    concurrency_key, concurrency_limit: At most so many runs of this type and key at a time (1).
    concurrency_scope: When a run counts for the key: ``slot`` while a worker holds it, ``open`` from its first claim
        to its end, waits included (``slot``).
    on_failure, on_failure_queue: Workflow type that is started when the run fails or times out.
    """

    queue: str
    version: str
    step_retry: Retry
    run_retry: Retry
    retry: Retry
    step_timeout: Duration
    heartbeat_timeout: Duration
    execution_timeout: Duration
    tags: Mapping[str, str]
    concurrency_key: str
    concurrency_limit: int
    concurrency_scope: Literal["slot", "open"]
    on_failure: str
    on_failure_queue: str


class ChildOptions(RunPolicies, total=False):
    """RunPolicies, and further options of a run that a start or a child has in common. Times without a zone are local.

    deadline: The earlier of this and execution_timeout applies.
    start_at: Earliest start. delay: the same by the server's clock, instead of start_at.
    priority: -100 to 100, higher first.
    requirements: Labels or capabilities that a worker must have.
    """

    deadline: datetime
    start_at: datetime
    delay: Duration
    priority: int
    requirements: Mapping[str, str]


class StartOptions(ChildOptions, total=False):
    """ChildOptions, and what only starts of clients have.

    id: The application's own id, unique among active runs of the namespace.
    reuse: What to do if a run has the id: ``when_ended`` returns an active run, ``never`` any retained run, ``reject``
        raises Conflict if a run is active (``when_ended``).
    request_id: Identifies the call: repeating it always returns the same run (a new UUIDv7).
    """

    id: str
    reuse: Literal["when_ended", "never", "reject"]
    request_id: str


def check_options(o: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raises ConfigError for the first option that is not known."""
    unknown = sorted(set(o) - set(known))
    if unknown:
        raise ConfigError(f"unknown option {unknown[0]!r}; there are {', '.join(sorted(known))}")


def _one_of(name: str, **values: Any) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if value not in values:
            *some, last = values
            raise ConfigError(f"option {name} is {value!r}, want {', '.join(some)} or {last}")
        return values[value]

    return convert


def _int32(name: str) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 31) <= value < 1 << 31:
            raise ConfigError(f"option {name} is {value!r:.100}, want a whole number")
        return value

    return convert


_NAMES = {"queue": "task_queue", "id": "external_id", "reuse": "external_id_reuse", "cron": "cron_expr",
          "overlap": "overlap_policy", "jitter": "jitter_ms", "deadline": "deadline_at",
          "on_failure": "on_failure_workflow", "on_failure_queue": "on_failure_task_queue"}
_TIMEOUTS = {"step_timeout": "start_to_close_timeout_ms", "heartbeat_timeout": "heartbeat_timeout_ms",
             "execution_timeout": "execution_timeout_ms"}
_CONVERT: dict[str, Callable[[Any], Any]] = {
    "reuse": _one_of("reuse", when_ended=f.EXTERNAL_ID_REUSE_UNSPECIFIED, never=f.EXTERNAL_ID_REUSE_NEVER,
                     reject=f.EXTERNAL_ID_REUSE_REJECT),
    "concurrency_scope": _one_of("concurrency_scope", slot=f.CONCURRENCY_SCOPE_UNSPECIFIED,
                                 open=f.CONCURRENCY_SCOPE_OPEN),
    "overlap": _one_of("overlap", allow=s.OVERLAP_POLICY_ALLOW, skip=s.OVERLAP_POLICY_SKIP,
                       buffer_one=s.OVERLAP_POLICY_BUFFER_ONE),
    "deadline": stamp, "start_at": stamp, "next_fire_at": stamp, "jitter": lambda value: whole_ms(value, "jitter"),
    "priority": _int32("priority"), "concurrency_limit": _int32("concurrency_limit")}


def wire_fields(o: Mapping[str, Any], known: Any) -> dict[str, Any]:
    """Returns the fields of a request for the options of a start, a child or a schedule; None is as not given."""
    check_options(o, known.__optional_keys__)
    steps, run = policies(o)
    made: dict[str, Any] = {"retry_policy": steps, "run_retry_policy": run}
    limits = {wire: whole_ms(o.get(name), name) for name, wire in _TIMEOUTS.items()}
    if any(limits.values()):
        made["timeouts"] = common.TimeoutConfig(**limits)
    for name, value in o.items():
        if value is not None and name not in _TIMEOUTS and not name.endswith("retry"):
            made[_NAMES.get(name, name)] = _CONVERT[name](value) if name in _CONVERT else value
    return made


def start_request(namespace: str, workflow_type: str, payload: common.Payload, queue: str, now: float,
                  o: StartOptions) -> f.StartWorkflowRequest:
    """Returns the request that starts a run, or raises ConfigError for an option that is unknown or invalid."""
    fields = wire_fields(o, StartOptions)
    delay = seconds(fields.pop("delay", 0.0), "delay")
    if delay < 0:
        raise ConfigError(f"option delay is {delay:g} s, want 0 or more")
    if "delay" in o and "start_at" in o:
        raise ConfigError("options delay and start_at are both set, want one of them")
    if delay > 0:
        fields |= {"start_at": wire_time(now + delay), "start_in": wire_duration(delay)}
    fields["task_queue"] = fields.get("task_queue") or queue or "default"
    return f.StartWorkflowRequest(namespace=namespace, workflow_type=workflow_type, input=payload, **fields)
