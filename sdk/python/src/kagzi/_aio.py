"""The client for event loops. generate.py makes the blocking one in _blocking.py of this file."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar, Unpack, cast, overload

from . import _details as details, codec as codecs
from ._contract import Explanation, ScheduleDetails
from ._convert import Duration, seconds, stamp, when, wire_duration
from ._define import Workflow
from ._details import ListFilters, RunDetails, ScheduleChanges, ScheduleOptions
from ._intercept import ClientCall, ClientInterceptor
from ._wire import TLS, Rpc, pause_async, resolve
from .errors import ConfigError, Conflict, DecodeError, KagziError, RunError, ServerError, Unavailable, detail_error
from .policy import StartOptions
from .v1 import admin_pb2 as admin, common_pb2 as common, workflow_pb2 as f, workflow_schedule_pb2 as s

In = TypeVar("In")
Out = TypeVar("Out")
MAX_BATCH = 1000
_WAIT = 50.0  # seconds that one call waits
_CHUNK = 1 << 20


class AsyncRun(Generic[Out]):
    """A handle to one run. Making one does not call the server.

    Attributes:
        id: The run's id, a UUIDv7.
        existed: Start found it by its external id, or retry found an active retry.
        other_input: The run that start found has another input.
    """

    def __init__(self, client: AsyncClient, id: str, type: Any = Any, *, existed: bool = False,
                 other_input: bool = False, start: str = "") -> None:
        self._client, self.id, self._type = client, id, type
        self.existed, self.other_input, self._start = existed, other_input, start

    def __repr__(self) -> str:
        return f"<kagzi run {self.id}>"

    async def result(self, timeout: Duration | None = None) -> Out:
        """Waits for the end of the run, through continue as new, and returns its output.

        Raises:
            RunError: It ended without a result.
            TimeoutError: It has not ended within timeout seconds.
        """
        d = await self.wait(timeout)
        if d.status != "COMPLETED":
            raise d.error or RunError(d.run_id, d.status, "")
        try:
            return cast(Out, d.output(self._type))
        except DecodeError as e:
            raise DecodeError(f"output of run {d.run_id}: {e}", e.path) from e

    async def wait(self, timeout: Duration | None = None) -> RunDetails:
        """Waits for the end of the run, and of those that it continued as, in whatever status, and returns it.

        Raises:
            TimeoutError: It has not ended within timeout seconds.
        """
        c, r = self._client, f.WaitWorkflowRequest(namespace=self._client.namespace, run_id=self.id)
        until, failures = None if timeout is None else time.monotonic() + seconds(timeout, "timeout"), 0
        with c._around("WaitWorkflow", r) as more:
            while True:
                left = _WAIT if until is None else min(_WAIT, until - time.monotonic())
                if left <= 0:
                    raise TimeoutError(f"run {r.run_id} has not ended within {seconds(timeout or 0, 'timeout'):g} s")
                r.wait.CopyFrom(wire_duration(max(left, 0.001)))
                try:
                    a = await c._rpc.call_async("WaitWorkflow", r, left + 10, more)
                except ServerError as e:
                    if not isinstance(e, Unavailable) and (e.code not in ("TIMEOUT", "INTERNAL") or failures > 10):
                        raise
                    failures += 1
                    await pause_async(min(2.0 ** failures / 4, 8.0, left))
                    continue
                failures = 0
                if a.finished and not a.workflow.continued_as_run_id:
                    return details.run_details(a.workflow, c.codec)
                if a.finished:
                    r.run_id = a.workflow.continued_as_run_id

    async def get(self) -> RunDetails:
        """Returns the current state."""
        return await self._client.get(self.id)

    async def cancel(self, reason: str = "", grace: Duration = 30.0) -> None:
        """Asks the code to stop and clean up within the grace, in seconds; waits for neither."""
        await self._act("CancelWorkflow", reason=reason, grace=wire_duration(max(seconds(grace, "grace"), 0.001)))

    async def terminate(self, reason: str = "") -> None:
        """Ends the run at once, without letting it clean up."""
        await self._act("TerminateWorkflow", reason=reason)

    async def pause(self, reason: str = "", *, now: bool = False) -> None:
        """Keeps the run from going on until it is resumed. Steps that run finish first, unless now is set."""
        await self._follow(lambda i: self._client._act("PauseWorkflow", i, reason=reason, now=now))

    async def resume(self, reason: str = "", *, accept_divergence: bool = False) -> None:
        """Lets a paused run go on; accept_divergence: its code need not reach what is recorded so far."""
        await self._follow(lambda i: self._client._act("ResumeWorkflow", i, reason=reason,
                                                       accept_divergence=accept_divergence))

    async def retry(self, *, from_step: str = "", restart: bool = False, keep_all: bool = False, reason: str = "",
                    request_id: str = "") -> AsyncRun[Out]:
        """Starts a new run of one that ended without a result; keeps the results of completed steps.

        Args:
            from_step: This step and all that began after it run again.
            restart: Keep no step.
            keep_all: Keep steps that began after the first failure, too.
            reason: For the audit log.
            request_id: As in StartOptions.
        """
        if restart and from_step:
            raise ConfigError("retry: from_step and restart exclude each other")
        if keep_all and (restart or from_step):
            raise ConfigError("retry: keep_all excludes from_step and restart")
        r = await self._act("RetryWorkflow", from_step=from_step, restart=restart, keep_all=keep_all, reason=reason,
                            request_id=request_id or details.uuid7())
        return AsyncRun(self._client, r.new_run_id, self._type, existed=r.already_running)

    async def signal(self, name: str, value: Any = None, *, id: str = "") -> None:
        """Sends a signal, which stays until the run receives it. A run receives each id once (a new UUIDv7)."""
        c, id = self._client, id or details.uuid7()

        async def send(i: str) -> None:
            info = codecs.PayloadInfo("signal", start=self._start if i == self.id else "", step=name)
            if c.codec is not None and not info.start:
                info = details.signal_info(c.codec, (await c.get(i)).wire, name)
            p = codecs.encode(c.codec, value, info)
            await c._act("SignalWorkflow", i, name=name, payload=p, signal_id=id)

        try:
            await self._follow(send)
        except DecodeError as e:
            raise DecodeError(f"value of signal {name}: {e}", e.path) from e

    async def override(self, step: str, value: Any = None, *, error: str = "", reason: str) -> None:
        """Sets the recorded result of a step of a paused or failed run, or its error. The reason is required."""
        c, output, failure = self._client, None, None
        if error:
            failure = common.ErrorDetail(message=error)
        else:
            start = details.digest_of((await self.get()).wire) if c.codec is not None else ""
            output = codecs.encode(c.codec, value, codecs.PayloadInfo("step", start=start, step=step))
        await c._call("OverrideStep", f.OverrideStepRequest(
            namespace=c.namespace, run_id=self.id, step_name=step, reason=reason, output=output, error=failure))

    async def explain(self) -> Explanation:
        """Says what the run waits for, since when, and what happens next."""
        return Explanation._of(await self._act("ExplainWorkflow"))

    async def pin(self, reason: str = "", *, pinned: bool = True) -> None:
        """Keeps the run from being deleted by retention, or ends that."""
        await self._act("PinWorkflow", reason=reason, pinned=pinned)

    async def steps(self) -> list[f.Step]:
        """Returns all attempts of its steps as on the wire, in the order in which they began."""
        r = admin.ListStepsRequest(namespace=self._client.namespace, run_id=self.id,
                                   page=common.PageRequest(page_size=1000))
        return [cast(f.Step, one) async for one in self._client._pages("ListSteps", r, "steps")]

    async def export(self, file: str | Path, *, redact_payloads: bool = False) -> None:
        """Writes the run with its children, payloads and signals to a zip file, called a capsule.

        Args:
            file: Is overwritten. After an error it is incomplete.
            redact_payloads: Export only sizes and hashes; the capsule cannot be imported or replayed.
        """
        c = self._client
        r = f.ExportWorkflowRequest(namespace=c.namespace, run_id=self.id, redact_payloads=redact_payloads)
        with c._around("ExportWorkflow", r) as more, Path(file).open("wb") as out:  # noqa: ASYNC230
            async for part in c._rpc.stream_async("ExportWorkflow", r, more):
                out.write(part.data)

    async def _act(self, method: str, **fields: Any) -> Any:
        return await self._client._act(method, self.id, **fields)

    async def _follow(self, act: Callable[[str], Awaitable[Any]]) -> None:
        """Acts on the run, and, if it continued as new, on the run that it continued as."""
        run_id, followed = self.id, {self.id}
        while True:
            try:
                await act(run_id)
                return
            except ServerError as e:
                run_id = details.continuation(e, followed)


class AsyncSchedule:
    """A handle to one schedule.

    Attributes:
        id: Its id.
    """

    def __init__(self, client: AsyncClient, id: str) -> None:
        self._client, self.id = client, id

    async def get(self) -> ScheduleDetails:
        """Returns the current state."""
        return details.schedule_details((await self._act("GetWorkflowSchedule")).schedule)

    async def update(self, **changes: Unpack[ScheduleChanges]) -> ScheduleDetails:
        """Changes the schedule in one commit; what is not given, or None, keeps its value. See ScheduleChanges."""
        c, workflow_type = self._client, ""
        if changes.get("input") is not None:
            workflow_type = (await self.get()).workflow_type
        r = details.schedule_changes(c.namespace, c.codec, self.id, workflow_type, changes)
        return details.schedule_details((await c._call("UpdateWorkflowSchedule", r)).schedule)

    async def pause(self, reason: str = "") -> None:
        """Stops it from firing."""
        await self._act("PauseWorkflowSchedule", reason=reason)

    async def resume(self, reason: str = "") -> None:
        """Lets it fire again."""
        await self._act("ResumeWorkflowSchedule", reason=reason)

    async def delete(self, reason: str = "") -> None:
        """Deletes it; runs that it started remain."""
        await self._act("DeleteWorkflowSchedule", reason=reason)

    async def trigger(self, *, request_id: str = "") -> AsyncRun[Any]:
        """Fires it once now, in addition to its ticks."""
        r = await self._act("TriggerWorkflowSchedule", request_id=request_id or details.uuid7())
        return self._client.run(r.run_id)

    async def backfill(self, start: datetime, end: datetime | None = None,
                       reason: str = "") -> list[tuple[datetime, str, bool]]:
        """Starts the runs of past ticks that have none yet: returns tick, run id, and whether it had fired before."""
        r = await self._act("BackfillWorkflowSchedule", **{"from": stamp(start)}, to=stamp(end), reason=reason)
        return [(when(t.tick), t.run_id, t.existed) for t in r.ticks]

    def runs(self) -> AsyncIterator[RunDetails]:
        """Yields the runs that it started, newest first."""
        c = self._client
        r = s.ListScheduleRunsRequest(namespace=c.namespace, schedule_id=self.id, page=common.PageRequest())
        return c._pages("ListScheduleRuns", r, "runs", lambda w: details.run_details(w, c.codec))

    async def _act(self, method: str, **fields: Any) -> Any:
        return await self._client._act(method, self.id, **fields)


class AsyncClient:
    """A client for event loops.

    Args:
        profile: Profile of kagzi.toml (KAGZI_PROFILE, else the file's default); ``off`` for none.
        address: Of the server, host:port, or of several, separated by commas (KAGZI_ADDRESS, else the profile's, else
            127.0.0.1:50051).
        namespace: (KAGZI_NAMESPACE, else the profile's, else ``default``.)
        codec: The same as the workers'.
        api_key: (KAGZI_API_KEY, the file of KAGZI_API_KEY_FILE, else the profile's.)
        tls: TLS settings, or True for the defaults (KAGZI_TLS…, else the profile's, else none).
        interceptors: Wrap each call, the first is the outermost; a wait is one call.

    Raises:
        ConfigError: An option, the environment or the profile is invalid. The first call connects, not this.
    """

    def __init__(self, *, profile: str = "", address: str = "", namespace: str = "",
                 codec: codecs.Codec | None = None, api_key: str = "", tls: TLS | bool | None = None,
                 interceptors: Iterable[ClientInterceptor] = ()) -> None:
        self.endpoint = resolve(profile, address, namespace, api_key, tls)
        self.codec, self.namespace, self._rpc = codec, self.endpoint.namespace, Rpc(self.endpoint)
        self._interceptors = list(interceptors)

    async def close(self) -> None:
        """Closes the connection; calls in flight fail."""
        self._rpc.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._rpc.close()

    @contextmanager
    def _around(self, method: str, request: Any) -> Iterator[list[tuple[str, str]]]:
        """Runs a call within the interceptors; yields the metadata that they add to it."""
        call = ClientCall(method, request, [])
        with ExitStack() as stack:
            for one in self._interceptors:
                stack.enter_context(one(call))
            yield call.metadata
            return
        raise KagziError(f"an interceptor hides the failure of {method}") from None

    async def _call(self, method: str, request: Any) -> Any:
        with self._around(method, request) as more:
            return await self._rpc.call_async(method, request, None, more)

    async def _act(self, method: str, id: str, **fields: Any) -> Any:
        module, key = cast(Any, s if "Schedule" in method else f), "schedule_id" if "Schedule" in method else "run_id"
        request = getattr(module, method + "Request")
        return await self._call(method, request(namespace=self.namespace, **{key: id}, **fields))

    async def _pages(self, method: str, r: Any, name: str,
                     convert: Callable[[Any], Any] = lambda one: one) -> AsyncIterator[Any]:
        if name == "workflows" and r.query:
            details.knows_query(await self._call("GetServerInfo", admin.GetServerInfoRequest()))
        while True:
            answer = await self._call(method, r)
            for one in getattr(answer, name):
                yield convert(one)
            r.page.page_token = answer.page.next_page_token
            if not r.page.page_token:
                return

    @overload
    async def start(self, workflow: Workflow[In, Out], input: In = ..., **o: Unpack[StartOptions]) -> AsyncRun[Out]: ...

    @overload
    async def start(self, workflow: str, input: Any = ..., **o: Unpack[StartOptions]) -> AsyncRun[Any]: ...

    async def start(self, workflow: Any, input: Any = None, **o: Unpack[StartOptions]) -> AsyncRun[Any]:
        """Starts a run; when it returns, the run is on the server's disk.

        In code of a step, the run and step are recorded as its parent.

        Args:
            workflow: A workflow, or the name of a type.
            input: Its input.
            **o: See StartOptions.

        Raises:
            InvalidArgument: The server refuses a value; the message names the field.
            Conflict: An external id or request id is taken.
        """
        r = details.start_of(self.namespace, self.codec, workflow, input, o)
        await details.parent_of_async([r], self.endpoint)
        type = details.target(workflow)[2]
        try:
            return self._begun(r, await self._call("StartWorkflow", r), type)
        except Conflict as e:
            return await self._before(r, o, e, type)

    def _begun(self, r: f.StartWorkflowRequest, a: f.StartWorkflowResponse, type: Any) -> AsyncRun[Any]:
        start = details.digest_of(r) if self.codec is not None and not a.already_exists else ""
        return AsyncRun(self, a.run_id, type, existed=a.already_exists,
                        other_input=a.other_input and self.codec is None, start=start)

    async def _before(self, r: f.StartWorkflowRequest, o: StartOptions, refusal: Conflict, type: Any) -> AsyncRun[Any]:
        """Returns the run that an earlier call with the same request_id made. A codec's bytes differ each time."""
        if (self.codec is None or not o.get("request_id") or refusal.subject != "run" or not refusal.subject_id
                or refusal.status.name != "FAILED_PRECONDITION"):
            raise refusal
        d = (await self.get(refusal.subject_id)).wire
        if not details.same_start(self.codec, r, d):
            raise refusal
        return AsyncRun(self, d.run_id, type, start=details.digest_of(d))

    async def start_many(self, workflow: Workflow[In, Out] | str, inputs: Sequence[In],
                         each: Callable[[int], StartOptions] = lambda _: {},
                         **o: Unpack[StartOptions]) -> list[AsyncRun[Out] | ServerError]:
        """Starts a run for each input, at most 1,000 runs and 4 MiB, in one commit.

        Args:
            workflow: A workflow, or the name of a type.
            inputs: The inputs.
            each: Returns options of the i-th run, such as its id.
            **o: Options of all.

        Returns:
            For each input the run, or the server's refusal; the other runs start.
        """
        if len(inputs) > MAX_BATCH:
            raise ConfigError(f"{len(inputs)} runs in one call are more than the limit of {MAX_BATCH}")
        requests = []
        for n, value in enumerate(inputs):
            mine = cast(StartOptions, {**o, **each(n)})
            if len(inputs) > 1 and "request_id" in o and "request_id" not in each(n):
                mine["request_id"] = f"{o['request_id']}-{n}"
            requests.append(details.start_of(self.namespace, self.codec, workflow, value, mine))
        if not requests:
            return []
        await details.parent_of_async(requests, self.endpoint)
        answer = await self._call("StartWorkflows", f.StartWorkflowsRequest(requests=requests))
        type = details.target(workflow)[2]
        return [detail_error(a.error) if a.HasField("error") else self._begun(r, a.started, type)
                for r, a in zip(requests, answer.results, strict=True)]

    def run(self, run_id: str, type: Any = Any) -> AsyncRun[Any]:
        """Returns a handle to the run with an id; type is that of its output."""
        return AsyncRun(self, run_id, type)

    async def get(self, run_id: str) -> RunDetails:
        """Returns a run.

        Raises:
            NotFound: There is none.
        """
        return details.run_details((await self._act("GetWorkflow", run_id)).workflow, self.codec)

    async def get_by_id(self, external_id: str) -> RunDetails:
        """Returns the newest run with an external id."""
        r = f.GetWorkflowByExternalIdRequest(namespace=self.namespace, external_id=external_id)
        return details.run_details((await self._call("GetWorkflowByExternalId", r)).workflow, self.codec)

    def list(self, statuses: Iterable[str] = (), **filters: Unpack[ListFilters]) -> AsyncIterator[RunDetails]:
        """Yields matching runs, newest first, page by page.

        Args:
            statuses: Such as ``RUNNING``; any of them.
            **filters: See ListFilters.
        """
        r = details.list_request(self.namespace, statuses, filters)
        return self._pages("ListWorkflows", r, "workflows", lambda w: details.run_details(w, self.codec))

    async def import_run(self, file: str | Path, *, request_id: str = "") -> AsyncRun[Any]:
        """Adds the runs of a capsule to the namespace, under new ids, and returns the exported one.

        All runs are imported or none. Open ones are imported paused; resume continues them. They show their external
        ids but do not reserve them. existed says that this request_id was imported before.

        Args:
            file: Written by export, or by ``kagzi workflow export``; at most 256 MiB.
            request_id: As in StartOptions.
        """
        head = f.Capsule(namespace=self.namespace, request_id=request_id or details.uuid7())
        data = Path(file).read_bytes()  # noqa: ASYNC240
        parts = [f.Capsule(data=data[at:at + _CHUNK]) for at in range(0, len(data), _CHUNK)]
        with self._around("ImportWorkflow", head) as more:
            r = await self._rpc.call_async("ImportWorkflow", [head, *parts], None, more)
            return AsyncRun(self, r.run_id, existed=r.already_imported)

    async def create_schedule(self, workflow: Workflow[In, Any] | str, cron: str, input: In = cast(Any, None),
                              **o: Unpack[ScheduleOptions]) -> AsyncSchedule:
        """Creates a schedule that starts a run at each tick of a cron expression.

        Args:
            workflow: A workflow, or the name of a type.
            cron: Five to seven fields, a name such as ``@hourly``, or an interval such as ``@every 90s``.
            input: Input of the runs.
            **o: See ScheduleOptions.
        """
        r = details.schedule_request(self.namespace, self.codec, workflow, cron, input, o)
        return AsyncSchedule(self, (await self._call("CreateWorkflowSchedule", r)).schedule.schedule_id)

    def schedule(self, id: str) -> AsyncSchedule:
        """Returns a handle to the schedule with an id or name."""
        return AsyncSchedule(self, id)

    def list_schedules(self, queue: str = "") -> AsyncIterator[ScheduleDetails]:
        """Yields schedules, newest first."""
        r = s.ListWorkflowSchedulesRequest(namespace=self.namespace, task_queue=queue or None,
                                           page=common.PageRequest())
        return self._pages("ListWorkflowSchedules", r, "schedules", details.schedule_details)

    async def preview_schedule(self, cron: str, *, time_zone: str = "", count: int = 5,
                               after: datetime | None = None) -> Sequence[datetime]:
        """Returns the next ticks of a cron expression, in UTC. Stores nothing."""
        r = await self._call("PreviewSchedule", s.PreviewScheduleRequest(
            cron_expr=cron, time_zone=time_zone, count=count, after=stamp(after)))
        return [when(t) for t in r.ticks]
