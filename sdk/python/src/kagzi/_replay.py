"""Replays: the code of a run against its record, without a server. ``kagzi check`` and capsules use them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import ParseDict, ParseError

from . import _parking, codec
from ._blocking import Client
from ._convert import printable, unix
from ._define import Workflow
from ._details import status_name
from ._outbox import Op
from ._run import Run
from .errors import ConfigError, KagziError, NotFound
from .v1 import common_pb2 as common, worker_pb2 as w, workflow_pb2 as f

if TYPE_CHECKING:
    from ._code import WorkflowCode
    from .worker import Worker

CHECK_ARGUMENT, CHECK_VARIABLE = "-kagzi-check", "KAGZI_CHECK"
_LIMIT = 60.0  # seconds for one run of a check
_LOOKS = 5  # reads of a run that changes while it is read
_OPEN = ("PENDING", "RUNNING", "SLEEPING")
_PREVIEW = 200

if CHECK_ARGUMENT in sys.argv[1:]:  # a program that this one starts then checks as well
    sys.argv[1:] = [a for a in sys.argv[1:] if a != CHECK_ARGUMENT]
    os.environ[CHECK_VARIABLE] = "1"


class Divergence(KagziError):
    """The first difference between a run's code and its record.

    Attributes:
        run_id: Of the run.
        workflow_type: Its type.
        step: The recorded step, or the code's extra one; empty at the run's input and end.
        expected: What is recorded.
        got: What the code did.
    """

    def __init__(self, run: f.Workflow, step: str, expected: str, got: str) -> None:
        self.run_id, self.workflow_type, self.step = run.run_id, run.workflow_type, step
        self.expected, self.got = expected, got
        at = f" at step {step}" if step else ""
        super().__init__(printable(f"run {run.run_id} of type {run.workflow_type} diverges{at}: expected {expected}, "
                                   f"got {got}"))


class Record:
    """A run and the latest attempt of each of its steps."""

    def __init__(self, run: f.Workflow, attempts: Iterable[f.Step]) -> None:
        latest: dict[str, f.Step] = {}
        for s in attempts:
            old = latest.get(s.name)
            if old is None or (s.is_latest, s.attempt_number) > (old.is_latest, old.attempt_number):
                latest[s.name] = s
        self.run = run
        self.steps = sorted(map(_still_open, latest.values()), key=lambda s: (s.sequence, s.name))

    def task(self) -> w.Task:
        """Returns the task that a worker would get for the run."""
        r = self.run
        both = {field.name: value for field, value in r.ListFields() if field.name in w.Task.DESCRIPTOR.fields_by_name}
        return w.Task(**both, history=self.steps, attempt=r.attempts,
                      cancel_requested=r.HasField("cancel_requested_at"))


def _still_open(s: f.Step) -> f.Step:
    """Returns a step as the code knows it: one that the end of the run interrupted has no result yet."""
    ran = s.error.code == common.ERROR_CODE_CANCELLED and s.error.type == "run_ended"
    if s.status != f.STEP_STATUS_FAILED or not (ran or (s.is_latest and s.HasField("retry_at"))):
        return s
    still = f.Step()
    still.CopyFrom(s)
    still.status = f.STEP_STATUS_RUNNING
    still.ClearField("error")
    return still


class Recorded:
    """Takes the place of the connection while a run is replayed: its first end decides."""

    keeps_order, resumes_runs, lease = True, False, 30.0

    def __init__(self, verdict: asyncio.Future[Op]) -> None:
        self._verdict = verdict

    def post(self, op: Op) -> None:
        """Takes an operation. All but the ends are of no effect, and nothing waits for their answers."""
        if op.kind in ("complete_workflow", "fail_workflow", "release_task") and not self._verdict.done():
            self._verdict.set_result(op)

    def forget(self, _: object) -> None:
        """Does nothing."""

    withdraw = forget

    def trusted(self) -> bool:
        """Returns False: no code of a step begins."""
        return False


async def replay(worker: Worker, code: WorkflowCode, record: Record, limit: float | None = None) -> Divergence | None:
    """Runs code against a record for at most limit seconds; returns the first difference, None if they agree."""
    worker.loop = asyncio.get_running_loop()
    verdict: asyncio.Future[Op] = worker.loop.create_future()
    worker.session = Recorded(verdict)  # type: ignore[assignment]
    run = Run(worker, record.task(), code)
    run.replaying = True
    times = [unix(t) for s in record.steps for t in (s.created_at, s.started_at, s.finished_at)]
    run.ahead = max(0.0, max(times, default=0.0) - run.received)  # what is recorded has passed

    def begin() -> None:
        try:
            run.begin(record.steps)
        except BaseException as e:
            verdict.set_exception(e)

    worker.loop.call_soon(begin)  # outside of this task: from Python 3.14 on, tasks cannot nest
    try:
        async with asyncio.timeout(limit):
            return _compare(run, record, (await verdict).msg)
    finally:
        run.over("replayed")
        run.drop()


def _compare(run: Run, record: Record, end: w.SessionRequest) -> Divergence | None:
    def differs(step: str, expected: str, got: str) -> Divergence:
        return Divergence(record.run, step, expected, got)

    failure = end.fail_workflow.error if end.HasField("fail_workflow") else None
    said = f"the run failed: {failure.message[:_PREVIEW]}" if failure is not None else ""
    made = _parking.divergence(run).made if run.held or run.misfit is not None else []
    if failure is not None and failure.type == "unreadable":
        return differs(run.unreadable, "a value that the code can read", failure.message)
    if run.rejected and run.misfit is None:
        return differs("", "a run that the SDK accepts", failure.message if failure is not None else "")
    if not said and end.HasField("complete_workflow"):
        said = "the run continued as new" if end.complete_workflow.HasField("continue_as") else (
            "the run completed with " + _preview(run, end.complete_workflow.output))
    missed = _parking.owed(run)
    waits = [f.Call(name=c.name, kind=c.kind) for c in run.open if c.record is not None]
    got = said or (f"nothing beyond {_parking.call_names(waits[:1])}" if waits and not made else
                   _parking.call_names(made))
    if run.misfit is not None:
        return differs(run.misfit.name, _parking.call_names([c for c in missed if c.name == run.misfit.name]), got)
    if missed:
        return differs(missed[0].name, _parking.call_names(missed[:1]), got)
    return _compare_ends(run, record, end, said)


def _compare_ends(run: Run, record: Record, end: w.SessionRequest, said: str) -> Divergence | None:
    r = record.run
    status = status_name(r.status)
    failed = status == "FAILED" and not r.error.code and r.error.type not in ("refused", "nondeterministic")
    if status != "COMPLETED" and not failed:
        return None
    if failed:
        expected = f"the run to have failed: {r.error.message[:_PREVIEW]}"
        d = end.fail_workflow.error
        same = end.HasField("fail_workflow") and (d.message, d.type) == (r.error.message, r.error.type)
    elif r.HasField("continued_as_run_id"):
        expected, same = "the run to have continued as new", end.complete_workflow.HasField("continue_as")
    else:
        expected = "the run to have completed with " + _preview(run, r.output)
        same = end.HasField("complete_workflow") and _plain(run, end.complete_workflow.output) == _plain(run, r.output)
    waits = next((c.name for c in run.open), "")
    return None if same else Divergence(r, "" if said else waits, expected, said or f"a wait for {waits}")


def _plain(run: Run, p: common.Payload) -> Any:
    return codec.decode(run.codec, p, codec.PayloadInfo("output", run_id=run.task.run_id))


def _preview(run: Run, p: common.Payload) -> str:
    return json.dumps(_plain(run, p))[:_PREVIEW]


def load_capsule(file: str | Path, run_id: str = "") -> Record:
    """Reads a run of a capsule, the exported one unless run_id names another."""
    try:
        with zipfile.ZipFile(file) as z:
            manifest = json.loads(z.read("manifest.json"))
            if manifest["format"] != "kagzi-capsule" or manifest["version"] != 1:
                raise ConfigError(f"capsule {file}: format {manifest['format']!r:.40} of version "
                                  f"{manifest['version']!r:.10}; this one reads kagzi-capsule of version 1")
            at = next((r["directory"] for r in manifest["runs"]
                       if r["run_id"] == (run_id or manifest["root_run_id"])), None)
            if at is None:
                raise ConfigError(f"capsule {file} has no run {run_id}")
            if manifest.get("redacted"):
                raise ConfigError(f"capsule {file} was exported without payloads, and cannot be replayed")
            run = ParseDict(json.loads(z.read(f"{at}/run.json")), f.Workflow(), ignore_unknown_fields=True)
            steps = [ParseDict(s, f.Step(), ignore_unknown_fields=True) for s in json.loads(z.read(f"{at}/steps.json"))]
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError, ParseError) as e:
        if isinstance(e, ConfigError):
            raise
        raise ConfigError(f"{file} is not a capsule: {e}") from e
    return Record(run, steps)


def replay_capsule(file: str | Path, workflow: Workflow[Any, Any], *, run_id: str = "",
                   codec: codec.Codec | None = None) -> None:
    """Runs a workflow against the recorded results of an exported run, without a server: for tests and debuggers.

    No code of a step runs, and there is no time limit. At a call without a recorded result the code is suspended.

    Args:
        file: Written by ``run.export``, or by ``kagzi workflow export``.
        workflow: The workflow.
        run_id: Another run of the capsule, such as a child (the exported one).
        codec: The same as the workers'.

    Raises:
        Divergence: Code and record differ: a step that the code does not reach, one of another kind, a value that
            cannot be decoded, or an end that differs from the run's.
        ConfigError: The file is no capsule, has no such run, or was exported without payloads.
    """
    from .worker import Worker

    record = load_capsule(file, run_id)
    worker = Worker(workflow, profile="off", codec=codec)
    found = asyncio.run(replay(worker, worker.codes[workflow.name], record))
    if found is not None:
        raise found


def check(worker: Worker) -> bool:
    """Replays the open runs of the worker's types and queues, and prints those that diverge; true if none does.

    It registers nothing, runs no step and changes nothing on the server.
    """
    e, checked, diverged, stuck = worker.endpoint, 0, 0, 0
    with Client(profile="off", address=e.address, namespace=e.namespace, api_key=e.api_key, tls=e.tls) as client:
        for d in client.list(_OPEN, workflow_types=sorted(worker.codes), queues=[worker.queue, *worker.queues],
                             page_size=200):
            outcome = _check_one(worker, client, d.run_id)
            checked += outcome is not None
            if isinstance(outcome, KagziError):
                diverged += isinstance(outcome, Divergence)
                stuck += not isinstance(outcome, Divergence)
                print(outcome)
        if not checked and e.namespace != "default":
            _namespace_there(client)
    print(f"checked {checked} open runs of {len(worker.codes)} workflow types in namespace {printable(e.namespace)}: "
          f"{diverged} diverge, {stuck} came to no end", flush=True)
    return not diverged + stuck


def _check_one(worker: Worker, client: Client, run_id: str) -> KagziError | bool | None:
    """Returns what is wrong with a run, True if nothing is, None if it has ended.

    Its pages are no snapshot, so a divergence counts only if a second read shows the run unchanged.
    """
    last, outcome = b"", None
    for _ in range(_LOOKS):
        try:
            d = client.get(run_id)
            if d.ended:
                return None
            record = Record(d.wire, client.run(run_id).steps())
        except NotFound:
            return None
        read = b"".join(s.SerializeToString(deterministic=True) for s in record.steps)
        if last and last == read:
            return outcome
        last, began = read or b"-", time.monotonic()
        try:
            outcome = asyncio.run(replay(worker, worker.codes[d.workflow_type], record, _LIMIT))
        except TimeoutError:
            return KagziError(f"run {run_id}: the code came to no end within {time.monotonic() - began:.0f} s")
        if outcome is None:
            return True
    return outcome


def _namespace_there(client: Client) -> None:
    """Raises an error if the namespace does not exist: a misspelt one has no open runs either, and would pass."""
    from .v1 import namespace_pb2

    name = client.namespace
    try:
        client._call("GetNamespace", namespace_pb2.GetNamespaceRequest(namespace=name))
    except NotFound:
        raise ConfigError(f"check: there is no namespace {name}, so nothing was checked; if that is its name and "
                          f"nothing has run there yet, make it with: kagzi namespace create {name}") from None
    except KagziError:
        pass  # without the permission to ask, it counts as there
