"""What clients return about runs and schedules, and the requests that they send."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _trace, codec as codecs
from ._calls import StepInfo, step_info
from ._contract import RunFields, ScheduleDetails
from ._convert import Duration, enum_name, stamp
from ._define import Workflow
from .errors import ConfigError, DecodeError, Misuse, PreconditionFailed, RunError, ServerError, code_name
from .policy import RunPolicies, StartOptions, check_options, start_request, wire_fields
from .v1 import admin_pb2 as admin, common_pb2 as common, workflow_pb2 as f, workflow_schedule_pb2 as s

if TYPE_CHECKING:
    from ._wire import Endpoint

_PREFIX = "WORKFLOW_STATUS_"
ENDED = frozenset(("COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT", "TERMINATED"))


def status_name(status: int) -> str:
    """Returns the name of a status, such as ``RUNNING``; one of a newer server is ``STATUS_`` and its number."""
    return enum_name(f.WorkflowStatus, status, _PREFIX)


@dataclass(frozen=True)
class RunDetails(RunFields):
    """A snapshot of a run. A time is None if the event has not happened."""

    _codec: codecs.Codec | None = field(repr=False, compare=False)

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return self.status in ENDED

    def input(self, type: Any = Any) -> Any:
        """Decodes the input; None in lists, which carry none."""
        return self._payload("input", codecs.input_info(self.workflow_type, self.external_id), type)

    def output(self, type: Any = Any) -> Any:
        """Decodes the output of a COMPLETED run; None in lists, which carry none."""
        return self._payload("output", codecs.PayloadInfo("output", run_id=self.run_id), type)

    def _payload(self, name: str, info: codecs.PayloadInfo, type: Any) -> Any:
        return codecs.decode(self._codec, getattr(self.wire, name), info, type) if self.wire.HasField(name) else None


def run_details(w: f.Workflow, codec: codecs.Codec | None) -> RunDetails:
    status, error = status_name(w.status), None
    if w.HasField("error") or (status in ENDED and status != "COMPLETED"):
        error = RunError(w.run_id, status, w.error.message, type=w.error.type, code=code_name(w.error.code),
                         stack=w.error.stack)
    return RunDetails._of(w, error=error, _codec=codec)


def schedule_details(w: s.WorkflowSchedule) -> ScheduleDetails:
    overlap = {s.OVERLAP_POLICY_SKIP: "skip", s.OVERLAP_POLICY_BUFFER_ONE: "buffer_one"}.get(w.overlap_policy, "allow")
    return ScheduleDetails._of(w, paused=not w.enabled, time_zone=w.time_zone or "UTC", overlap=overlap)


class _ScheduleFields(RunPolicies, total=False):
    name: str
    time_zone: str
    overlap: Literal["allow", "skip", "buffer_one"]
    max_catchup: int
    jitter: Duration


class ScheduleOptions(_ScheduleFields, total=False):
    """Options of a schedule; those of its runs are as in StartOptions.

    name: Unique within the namespace. time_zone: IANA name (UTC). overlap: allow, skip or buffer_one (allow).
    max_catchup: Most missed ticks to fire after downtime, 0 for none (100). paused: Create it paused.
    jitter: How much later than its tick a run may start, at most 24 h. or_update: Replace the settings of the schedule
    that has the name.
    """

    paused: bool
    or_update: bool
    request_id: str


class ScheduleChanges(_ScheduleFields, total=False):
    """What ``schedule.update`` changes; options that are not named here are as in ScheduleOptions.

    next_fire_at: The first tick at or after it fires next. input: Of the runs. tags: Replace all tags.
    step_retry: Without run_retry, runs themselves are not retried any more, as with StartOptions.
    step_timeout, heartbeat_timeout, execution_timeout: Replace all three. reason: For the audit log.
    """

    cron: str
    next_fire_at: datetime
    input: Any
    reason: str


class ListFilters(TypedDict, total=False):
    """Which runs a list has: those that match all filters, and of a filter with several values any of them.

    search: Prefix of the run id or external id. query: In the language of ``kagzi help query``, such as
    ``type = "order*" and (error = timeout or tag.team = x)``; servers that would ignore it are refused.
    page_size: Runs that one call to the server returns (50).
    """

    workflow_types: Iterable[str]
    queues: Iterable[str]
    tags: Mapping[str, str]
    created_after: datetime
    created_before: datetime
    parent_run_id: str
    schedule_id: str
    worker_id: str
    search: str
    query: str
    page_size: int


def uuid7() -> str:
    """Returns a new UUID of version 7, for request ids."""
    value = (int(time.time() * 1000) << 80) | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return str(uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62))


def target(workflow: Workflow[Any, Any] | str) -> tuple[str, str, Any]:
    """Returns the type, queue and output type of a workflow, or of a type that is known by its name only."""
    if isinstance(workflow, Workflow):
        return workflow.name, workflow.queue, workflow.output_type
    return workflow, "", Any


def encode_input(codec: codecs.Codec | None, value: Any, name: str, id: str) -> common.Payload:
    try:
        return codecs.encode(codec, value, codecs.input_info(name, id))
    except DecodeError as e:
        raise DecodeError(f"input of workflow type {name}: {e}", e.path) from e


def start_of(namespace: str, codec: codecs.Codec | None, workflow: Workflow[Any, Any] | str, value: Any,
             o: StartOptions) -> f.StartWorkflowRequest:
    name, queue, _ = target(workflow)
    p = encode_input(codec, value, name, o.get("id", ""))
    r = start_request(namespace, name, p, queue, time.time(), o)
    r.request_id, r.traceparent = r.request_id or uuid7(), _trace.traceparent()
    return r


def digest_of(w: f.Workflow | f.StartWorkflowRequest) -> str:
    """Returns PayloadInfo.start of a run, or of one that a request starts."""
    return codecs.start_digest(w.workflow_type, w.external_id, w.input.data)


def same_start(codec: codecs.Codec, r: f.StartWorkflowRequest, d: f.Workflow) -> bool:
    """Whether a run is what an earlier call with the same request id made: a codec's bytes differ each time."""
    info = codecs.input_info(r.workflow_type, r.external_id)
    return ((d.workflow_type, d.task_queue, d.external_id) == (r.workflow_type, r.task_queue, r.external_id)
            and not d.HasField("retried_from_run_id")
            and bool(codecs.decode(codec, d.input, info) == codecs.decode(codec, r.input, info)))


def signal_info(codec: codecs.Codec, d: f.Workflow, name: str) -> codecs.PayloadInfo:
    """Describes a signal to a run."""
    own = digest_of(d)
    begun = codecs.start_of_signals(own, d.input)
    if begun != own:  # the metadata may be forged
        codecs.unpack(codec, d.input, codecs.input_info(d.workflow_type, d.external_id))
    return codecs.PayloadInfo("signal", start=begun, step=name)


def continuation(e: ServerError, followed: set[str]) -> str:
    """Returns the run that the one in a refusal continued as; raises the refusal if there is none."""
    following = e.metadata.get("continued_as_run_id", "")
    if e.code != "PRECONDITION_FAILED" or not following or following in followed:
        raise e
    followed.add(following)
    return following


def list_request(namespace: str, statuses: Iterable[str], o: ListFilters) -> f.ListWorkflowsRequest:
    check_options(o, ListFilters.__annotations__)
    numbers: list[Any] = []
    for name in statuses:
        if name not in {status_name(v) for v in f.WorkflowStatus.values()} - {"UNSPECIFIED"}:
            raise ConfigError(f"status {name!r}: want PENDING, RUNNING, SLEEPING, {', '.join(sorted(ENDED))}")
        numbers.append(f.WorkflowStatus.Value(_PREFIX + name))
    return f.ListWorkflowsRequest(
        namespace=namespace, statuses=numbers, workflow_types=o.get("workflow_types"), task_queues=o.get("queues"),
        tags=o.get("tags"), created_after=stamp(o.get("created_after")), created_before=stamp(o.get("created_before")),
        parent_run_id=o.get("parent_run_id"), schedule_id=o.get("schedule_id"), worker_id=o.get("worker_id"),
        search=o.get("search"), query=o.get("query"), page=common.PageRequest(page_size=o.get("page_size", 0)))


def knows_query(server: admin.GetServerInfoResponse) -> None:
    """Refuses a server that would ignore a query, and so list all runs."""
    if "query-runs" not in server.supported_features:
        raise PreconditionFailed(
            f"the server (version {server.version or 'unknown'}) does not know the filter query and would list all "
            "runs: upgrade it, or use the other filters", "PRECONDITION_FAILED", subject="server")


def schedule_request(namespace: str, codec: codecs.Codec | None, workflow: Workflow[Any, Any] | str, cron: str,
                     value: Any, o: ScheduleOptions) -> s.CreateWorkflowScheduleRequest:
    fields, (name, queue, _) = wire_fields(o, ScheduleOptions), target(workflow)
    paused = fields.pop("paused", False)
    if paused or not o.get("or_update"):
        fields["enabled"] = not paused
    fields["task_queue"] = fields.get("task_queue") or queue or "default"
    fields["request_id"] = fields.get("request_id") or uuid7()
    return s.CreateWorkflowScheduleRequest(namespace=namespace, workflow_type=name, cron_expr=cron,
                                           input=encode_input(codec, value, name, ""), **fields)


def schedule_changes(namespace: str, codec: codecs.Codec | None, id: str, workflow_type: str,
                     changes: ScheduleChanges) -> s.UpdateWorkflowScheduleRequest:
    """Returns the request that changes a schedule; what is None keeps its value."""
    fields = wire_fields(changes, ScheduleChanges)
    if "tags" in fields:
        fields["tags"] = s.ScheduleTags(tags=fields["tags"])
    if "input" in fields:
        fields["input"] = encode_input(codec, fields["input"], workflow_type, "")
    return s.UpdateWorkflowScheduleRequest(namespace=namespace, schedule_id=id, **fields)


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
        if at.on_loop:
            raise Misuse("async code of a step cannot start runs by a client that blocks: use AsyncClient")
        on = asyncio.run_coroutine_threadsafe(at.announced(), at.run.worker.loop)
        _set_parent(requests, at, on.result())
