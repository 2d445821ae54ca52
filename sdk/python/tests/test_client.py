"""Both clients: starts, reads, control, schedules, and typed refusals that name the field."""

from __future__ import annotations

import asyncio
import contextlib
import runpy
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Unpack

import grpc
import pytest

import kagzi
from kagzi.v1 import admin_pb2 as admin


@kagzi.workflow
async def echo(text: str) -> str:
    return await kagzi.do("s", lambda: text)


@kagzi.workflow
async def waits() -> int:
    return await kagzi.wait_signal("n", int)


@kagzi.workflow
async def fails(kind: str) -> None:
    await kagzi.do("before", int)
    if kind == "type":
        raise kagzi.NonRetryable("declined", type="card_declined")
    raise ValueError("odd")


def test_starts_are_idempotent_by_id_and_request_id(kagzi_env):
    c = kagzi_env.client
    a = c.start(waits, id="a", tags={"x": "1"}, priority=3, queue="q", version="1.0")
    b = c.start(waits, id="a", queue="q")
    assert (a.id, a.existed, b.existed) == (b.id, False, True)
    assert c.start(waits, request_id="r-1").id == c.start(waits, request_id="r-1").id
    with pytest.raises(kagzi.Conflict):
        c.start(waits, id="a", reuse="reject", queue="q")
    with pytest.raises(kagzi.Conflict):
        c.start(echo, "x", request_id="r-1")
    d = c.get_by_id("a")
    assert (d.run_id, d.queue, d.version, d.priority, dict(d.tags), d.status) == (a.id, "q", "1.0", 3, {"x": "1"},
                                                                               "PENDING")


def test_a_batch_starts_what_it_can(kagzi_env):
    kagzi_env.worker(echo)
    got = kagzi_env.client.start_many(echo, ["a", "b", "c"], lambda i: {"id": "no spaces"} if i == 1 else {})
    assert isinstance(got[1], kagzi.InvalidArgument)
    assert got[1].field == "external_id"
    assert [r.result(20) for r in got if isinstance(r, kagzi.Run)] == ["a", "c"]
    with pytest.raises(kagzi.ConfigError, match="1001 runs"):
        kagzi_env.client.start_many(echo, ["x"] * 1001)


@pytest.mark.parametrize(("options", "error", "field"), [
    ({"id": "no spaces"}, kagzi.InvalidArgument, "external_id"),
    ({"priority": 101}, kagzi.InvalidArgument, "priority"),
    ({"tags": {"": "x"}}, kagzi.InvalidArgument, "tags"),
    ({"concurrency_limit": 5}, kagzi.InvalidArgument, "concurrency_limit"),
])
def test_refusals_name_the_field(kagzi_env, options, error, field):
    with pytest.raises(error) as e:
        kagzi_env.client.start(echo, "x", **options)
    assert e.value.field.startswith(field)


@pytest.mark.parametrize(("options", "text"), [
    ({"colour": "red"}, "unknown option 'colour'"), ({"delay": -1}, "delay is -1"), ({"reuse": "x"}, "reuse is 'x'"),
    ({"delay": 1, "start_at": datetime.now()}, "both set"), ({"step_timeout": "5"}, "want seconds or a timedelta"),
    ({"retry": kagzi.Retry(jitter=2)}, "Retry.jitter"), ({"priority": "high"}, "priority is 'high'")])
def test_options_are_checked_before_the_call(kagzi_env, options, text):
    with pytest.raises(kagzi.ConfigError, match=text):
        kagzi_env.client.start(echo, "x", **options)


def test_unknown_runs_are_not_found(kagzi_env):
    with pytest.raises(kagzi.NotFound):
        kagzi_env.client.get("01a22221-0db9-716c-8af6-4572c1433311")
    with pytest.raises(kagzi.InvalidArgument) as e:
        kagzi_env.client.get("x")
    assert e.value.field == "run_id"


def test_runs_are_listed_and_waited_for(kagzi_env):
    kagzi_env.worker(echo)
    runs = [kagzi_env.client.start(echo, str(i), tags={"n": str(i)}) for i in range(5)]
    assert [r.wait(20).status for r in runs] == ["COMPLETED"] * 5
    c = kagzi_env.client
    assert {d.run_id for d in c.list(["COMPLETED"], page_size=2)} == {r.id for r in runs}
    assert [d.run_id for d in c.list(tags={"n": "3"})] == [runs[3].id]
    assert not list(c.list(["FAILED"], workflow_types=["echo"]))
    assert [d.run_id for d in c.list(query="tag.n in (3, 4) and not tag.n = 4")] == [runs[3].id]
    assert [d.run_id for d in c.list(query="tag.n = 1 or tag.n = 2", tags={"n": "2"}, page_size=1)] == [runs[2].id]
    with pytest.raises(kagzi.InvalidArgument) as e:
        list(c.list(query="colour = red"))
    assert e.value.field == "query"
    with pytest.raises(kagzi.ConfigError, match="status 'DONE'"):
        list(c.list(["DONE"]))
    assert runs[0].get().input(str) == "0"
    assert runs[0].get().output(str) == "0"


async def listed(address: str, namespace: str, **filters: Unpack[kagzi.ListFilters]) -> list[str]:
    """Returns the ids of the runs that the client for event loops lists."""
    async with kagzi.AsyncClient(profile="off", address=address, namespace=namespace) as c:
        return [d.run_id async for d in c.list(**filters)]


def test_the_client_for_event_loops_lists_by_a_query(kagzi_env):
    runs = [kagzi_env.client.start(echo, str(i), tags={"n": str(i)}).id for i in range(4)]

    def found(**filters: Unpack[kagzi.ListFilters]) -> list[str]:
        return asyncio.run(listed(kagzi_env.server.address, kagzi_env.namespace, **filters))

    assert found(query="tag.n in (1, 3) and not tag.n = 1") == [runs[3]]
    assert found(query="tag.n != 0", page_size=1) == [runs[3], runs[2], runs[1]]  # of three pages
    assert found(query="tag.n = 1 or tag.n = 2", tags={"n": "2"}) == [runs[2]]
    with pytest.raises(kagzi.InvalidArgument) as e:
        found(query="colour = red")
    assert e.value.field == "query"


@pytest.fixture
def older_server():
    """The address of a server that does not know queries, and the methods that it was asked for."""
    asked: list[str] = []
    info = admin.GetServerInfoResponse(version="0.8", supported_features=["keys"])

    class Handler(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            asked.append(details.method.rpartition("/")[2])
            answer = info.SerializeToString() if asked[-1] == "GetServerInfo" else b""
            return grpc.unary_unary_rpc_method_handler(lambda _, context: answer)

    server = grpc.server(ThreadPoolExecutor(1), handlers=[Handler()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}", asked
    server.stop(None).wait()


def test_a_query_is_not_sent_to_a_server_that_would_ignore_it(older_server):
    address, asked = older_server
    with kagzi.Client(profile="off", address=address) as c, pytest.raises(
            kagzi.PreconditionFailed, match=r"version 0\.8.*upgrade it"):
        list(c.list(query="tag.n = 1"))
    with pytest.raises(kagzi.PreconditionFailed, match=r"version 0\.8.*upgrade it"):
        asyncio.run(listed(address, "default", query="tag.n = 1"))
    assert asked == ["GetServerInfo"] * 2
    assert asyncio.run(listed(address, "default")) == []
    assert asked[2:] == ["ListWorkflows"]


def test_a_failed_run_raises_typed_and_is_retried(kagzi_env):
    kagzi_env.worker(fails)
    run = kagzi_env.client.start(fails, "type")
    with pytest.raises(kagzi.RunError) as e:
        run.result(20)
    assert (e.value.type, e.value.status, e.value.message) == ("card_declined", "FAILED", "declined")
    again = run.retry()
    assert again.id != run.id
    assert again.wait(20).status == "FAILED"
    assert [s.name for s in again.steps()] == ["before"]
    with pytest.raises(kagzi.ConfigError, match="exclude each other"):
        run.retry(restart=True, from_step="before")
    plain = kagzi_env.client.start(fails, "other")
    with pytest.raises(kagzi.RunError, match="odd") as e:
        plain.result(20)
    assert e.value.type == ""
    assert "test_client.py" in e.value.stack


def test_pause_resume_override_and_terminate(kagzi_env):
    kagzi_env.worker(waits)
    run = kagzi_env.client.start(waits)
    kagzi_env.waits(run)
    run.pause("look")
    kagzi_env.until(lambda: run.get().paused)
    run.override("n", 5, reason="by hand")
    run.resume()
    assert run.result(20) == 5
    other = kagzi_env.client.start(waits)
    other.terminate("enough")
    assert other.wait(20).status == "TERMINATED"
    with pytest.raises(kagzi.PreconditionFailed):
        other.signal("n", 1)


def test_a_wait_ends_at_its_time(kagzi_env):
    run = kagzi_env.client.start(waits)
    with pytest.raises(TimeoutError, match="has not ended within 0.1 s"):
        run.result(0.1)
    assert run.explain().blocker == "NO_WORKER"


def test_schedules(kagzi_env):
    c = kagzi_env.client
    s = c.create_schedule(echo, "0 6 * * *", "tick", name="daily", time_zone="Europe/Berlin", overlap="skip",
                          jitter=timedelta(seconds=5), retry=kagzi.Retry(attempts=2), concurrency_key="k",
                          concurrency_limit=2, concurrency_scope="open")
    d = s.get()
    assert (d.name, d.cron, d.time_zone, d.overlap, d.paused) == ("daily", "0 6 * * *", "Europe/Berlin", "skip", False)
    s.pause("holiday")
    assert s.get().pause_reason == "holiday"
    s.resume()
    assert s.update(cron="0 7 * * *", tags={"a": "b"}).cron == "0 7 * * *"
    s.update(step_retry=kagzi.Retry(attempts=5), run_retry=kagzi.Retry(attempts=4, initial=2), step_timeout=7,
             on_failure="handler", version="v2", next_fire_at=None, concurrency_limit=3)
    w = s.get().wire
    assert (w.concurrency_key, w.concurrency_limit, w.concurrency_scope) == ("k", 3, 2)
    assert (w.retry_policy.maximum_attempts, w.run_retry_policy.maximum_attempts) == (5, 4)
    assert (w.run_retry_policy.initial_interval_ms, w.timeouts.start_to_close_timeout_ms) == (2000, 7000)
    assert (w.on_failure_workflow, w.version, w.cron_expr) == ("handler", "v2", "0 7 * * *")
    s.update(step_retry=kagzi.Retry(attempts=6))
    w = s.get().wire
    assert (w.retry_policy.maximum_attempts, w.run_retry_policy.maximum_attempts) == (6, 1)
    with pytest.raises(kagzi.ConfigError, match="want allow, skip or buffer_one"):
        s.update(overlap="never")
    with pytest.raises(kagzi.ConfigError, match="unknown option 'crom'"):
        s.update(crom="0 7 * * *")
    kagzi_env.worker(echo)
    assert s.trigger().result(20) == "tick"
    assert len(list(s.runs())) == 1
    assert [x.schedule_id for x in c.list_schedules()] == [s.id]
    assert len(c.preview_schedule("@hourly", count=3)) == 3
    now = datetime.now(UTC)
    assert len(s.backfill(now - timedelta(days=2), now)) == 2
    with pytest.raises(kagzi.InvalidArgument) as e:
        c.create_schedule(echo, "nonsense", "x")
    assert e.value.field == "cron_expr"
    s.delete()
    with pytest.raises(kagzi.NotFound):
        s.get()


def test_the_client_for_event_loops(kagzi_env):
    kagzi_env.worker(echo, waits)

    async def use() -> None:
        async with kagzi.AsyncClient(profile="off", address=kagzi_env.server.address,
                                     namespace=kagzi_env.namespace) as c:
            runs = await asyncio.gather(*(c.start(echo, str(i)) for i in range(20)))
            assert await asyncio.gather(*(r.result(20) for r in runs)) == [str(i) for i in range(20)]
            run = await c.start(waits, id="w")
            await run.signal("n", 7)
            assert await run.result(20) == 7
            assert [d.run_id async for d in c.list(workflow_types=["waits"])] == [run.id]
            assert (await c.get_by_id("w")).status == "COMPLETED"
            with pytest.raises(kagzi.NotFound):
                await c.get("01a22221-0db9-716c-8af6-4572c1433311")
            run = await c.start(waits)
            waiting = asyncio.ensure_future(run.result())
            while (await run.get()).status != "SLEEPING":  # each look lets the other task go on, too
                pass
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            s = await c.create_schedule(echo, "@daily", "x")
            assert (await s.get()).cron == "@daily"
            await s.delete()

    asyncio.run(use())


def test_a_server_that_is_away_is_named():
    c = kagzi.Client(profile="off", address="127.0.0.1:1")
    with pytest.raises(kagzi.Unavailable, match="check that a server runs there"):
        c.get("01a22221-0db9-716c-8af6-4572c1433311")
    c.close()


def test_a_step_that_starts_a_run_is_its_parent(kagzi_env):
    made: dict[str, str] = {}

    async def start() -> str:
        async with kagzi.AsyncClient(profile="off", address=kagzi_env.server.address,
                                     namespace=kagzi_env.namespace) as c:
            made["id"] = (await c.start(echo, "x")).id
        return made["id"]

    kagzi_env.replace("starter", start)
    kagzi_env.worker(starts, echo)
    parent = kagzi_env.client.start(starts)
    parent.result(20)
    assert kagzi_env.client.get(made["id"]).parent_run_id == parent.id


@kagzi.workflow
async def starts() -> str:
    return await kagzi.do("starter", lambda: "replaced")


def test_profiles(tmp_path, monkeypatch):
    from kagzi._wire import resolve

    file = tmp_path / "kagzi.toml"
    file.write_text('[client]\nprofile = "prod"\nnamespace = "shop"\n[profile.prod]\naddress = "prod:1"\n'
                    'api-key-file = "k"\ntls-ca = "ca.pem"\n[profile.bad]\nadress = "x:1"\n')
    (tmp_path / "k").write_text("kz_secret\n")
    (tmp_path / "k").chmod(0o600)
    for name in ("ADDRESS", "NAMESPACE", "API_KEY", "API_KEY_FILE", "PROFILE", "TLS"):
        monkeypatch.delenv("KAGZI_" + name, raising=False)
    monkeypatch.setenv("KAGZI_CONFIG", str(file))
    e = resolve()
    assert (e.address, e.namespace, e.api_key) == ("prod:1", "shop", "kz_secret")
    assert e.tls is not None
    assert e.tls.ca == str(tmp_path / "ca.pem")
    assert "kz_secret" not in repr(e)
    monkeypatch.setenv("KAGZI_ADDRESS", "env:2")
    assert resolve().address == "env:2"
    assert resolve(address="given:3").address == "given:3"
    assert resolve("off").address == "127.0.0.1:50051"
    with pytest.raises(kagzi.ConfigError, match="did you mean 'address'"):
        resolve("bad")
    with pytest.raises(kagzi.ConfigError, match=r"no profile 'x' in .*'bad', 'prod'"):
        resolve("x")
    with pytest.raises(kagzi.ConfigError, match="tls-ca"):
        resolve().credentials()


def test_the_blocking_client_is_made_of_the_other():
    generate = runpy.run_path(str(Path(__file__).parent.parent / "generate.py"))
    assert Path(kagzi._blocking.__file__).read_text() == generate["blocking"](), "run: python generate.py --blocking"


def test_a_sync_step_that_starts_a_run_is_its_parent(kagzi_env):
    def start() -> str:
        return kagzi_env.client.start(echo, "x").id

    kagzi_env.replace("starter", start)
    kagzi_env.worker(starts, echo)
    parent = kagzi_env.client.start(starts)
    assert kagzi_env.client.get(parent.result(20)).parent_run_id == parent.id


def test_a_run_is_exported_and_imported(kagzi_env, tmp_path):
    kagzi_env.worker(echo)
    run = kagzi_env.client.start(echo, "x", id="e-1")
    run.result(20)
    file = tmp_path / "run.kagzi"
    run.export(file)
    again = kagzi_env.client.import_run(file, request_id="i-1")
    assert again.id != run.id
    assert again.get().output(str) == "x"
    assert [s.name for s in again.steps()] == ["s"]
    twice = kagzi_env.client.import_run(file, request_id="i-1")
    assert (twice.id, twice.existed) == (again.id, True)

    async def use() -> None:
        async with kagzi.AsyncClient(profile="off", address=kagzi_env.server.address,
                                     namespace=kagzi_env.namespace) as c:
            other = tmp_path / "other.kagzi"
            await c.run(run.id).export(other)
            assert (await (await c.import_run(other)).get()).external_id == "e-1"

    asyncio.run(use())
    with pytest.raises(kagzi.InvalidArgument):
        kagzi_env.client.import_run(__file__)


def test_interceptors_wrap_calls_of_clients(kagzi_env):
    seen: list[str] = []

    @contextlib.contextmanager
    def watch(call):
        seen.append(call.method)
        call.metadata.append(("x-tenant", "t1"))
        yield
        seen.append("done")

    @contextlib.contextmanager
    def refuse(call):
        if call.method == "TerminateWorkflow":
            raise PermissionError("not here")
        yield

    @contextlib.contextmanager
    def hide(call):
        with contextlib.suppress(kagzi.ServerError):
            yield

    kagzi_env.worker(echo)
    options = {"profile": "off", "address": kagzi_env.server.address, "namespace": kagzi_env.namespace}
    with kagzi.Client(**options, interceptors=[watch, refuse]) as c:
        run = c.start(echo, "x")
        assert run.result(20) == "x"
        with pytest.raises(PermissionError, match="not here"):
            run.terminate()
        assert seen == ["StartWorkflow", "done", "WaitWorkflow", "done", "TerminateWorkflow"]
        seen.clear()
        assert len(list(c.list(query="type = echo"))) == 1
        assert seen == ["GetServerInfo", "done", "ListWorkflows", "done"]
    with kagzi.Client(**options, interceptors=[hide]) as c, pytest.raises(kagzi.KagziError, match="hides the failure"):
        c.get("01a22221-0db9-716c-8af6-4572c1433311")
