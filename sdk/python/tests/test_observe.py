"""Interceptors, traces, and reports of clocks and random numbers in workflow code."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import logging
import os
import random
import threading
import time
import uuid

import pytest

import kagzi
from kagzi import _trace


@kagzi.step
def sync_step() -> str:
    return threading.current_thread().name


@kagzi.step
async def async_step() -> int:
    return kagzi.attempt()


@kagzi.workflow
async def both() -> int:
    await sync_step()
    await kagzi.wait_signal("go")
    return await async_step()


class Counts(kagzi.Interceptor):
    def __init__(self, log, name):
        self.log, self.name = log, name

    async def run(self, activation, next):
        self.log.append(f"{self.name} begins {activation.workflow_type} replays={activation.replays}")
        got = await next()
        self.log.append(f"{self.name} ended")
        return got

    @contextlib.contextmanager
    def step(self, attempt):
        self.log.append(f"{self.name} {attempt.step} {attempt.attempt}")
        yield
        self.log.append(f"{self.name} {attempt.step} done")


@pytest.mark.parametrize(("cache", "again"), [
    (10, []), (0, ["a begins both replays=True", "b begins both replays=True"])])
def test_interceptors_wrap_functions_and_steps_in_order(kagzi_env, cache, again):
    log: list[str] = []
    kagzi_env.worker(both, cache=cache, interceptors=[Counts(log, "a"), Counts(log, "b")])
    run = kagzi_env.client.start(both)
    kagzi_env.waits(run)
    assert "a ended" not in log, "what follows the function runs when it has ended, not when the run is parked"
    run.signal("go")
    assert run.result(20) == 1
    assert log == [
        "a begins both replays=False", "b begins both replays=False", "a sync_step 1", "b sync_step 1",
        "b sync_step done", "a sync_step done", *again, "a async_step 1", "b async_step 1", "b async_step done",
        "a async_step done", "b ended", "a ended"]


class Hides(kagzi.Interceptor):
    async def run(self, activation, next):
        with contextlib.suppress(Exception):
            return await next()

    def step(self, attempt):
        return contextlib.suppress(ValueError)


class Refuses(kagzi.Interceptor):
    @contextlib.contextmanager
    def step(self, attempt):
        if attempt.step == "sync_step":
            raise kagzi.NonRetryable("not today", type="refused-here")
        yield


@kagzi.workflow
async def fails(where: str) -> str:
    def bad():
        raise ValueError("bad")

    async def bad_async():
        raise ValueError("bad")

    if where != "function":
        await kagzi.do("s", bad if where == "step" else bad_async, retry=kagzi.Retry(attempts=1))
    raise kagzi.Failed("bad function")


@pytest.mark.parametrize(("where", "text"), [
    ("step", "an interceptor hides the failure of the workflow function"),
    ("async step", "an interceptor hides the failure of the workflow function"),
    ("function", "an interceptor hides the failure of the workflow function")])
def test_an_interceptor_cannot_turn_a_failure_into_a_success(kagzi_env, where, text):
    kagzi_env.worker(fails, interceptors=[Hides()])
    run = kagzi_env.client.start(fails, where)
    with pytest.raises(kagzi.RunError, match=text):
        run.result(20)
    if where != "function":
        assert "an interceptor hides the failure of step s" in run.steps()[0].error.message


def test_an_interceptor_may_refuse(kagzi_env):
    kagzi_env.worker(both, interceptors=[Refuses()])
    with pytest.raises(kagzi.RunError, match="not today") as e:
        kagzi_env.client.start(both).result(20)
    assert e.value.type == "refused-here"


@pytest.fixture
def spans():
    sdk = pytest.importorskip("opentelemetry.sdk.trace") if not os.environ.get("CI") else importlib.import_module(
        "opentelemetry.sdk.trace")
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    trace._TRACER_PROVIDER = None
    trace._TRACER_PROVIDER_SET_ONCE = type(trace._TRACER_PROVIDER_SET_ONCE)()


@kagzi.workflow
async def parent() -> str:
    await sync_step()
    try:
        await kagzi.do("bad", lambda: (_ for _ in ()).throw(kagzi.Failed("secret", type="sort")),
                       retry=kagzi.Retry(attempts=1))
    except kagzi.StepError:
        pass
    return await kagzi.do("trace", _trace.traceparent)


def test_a_trace_goes_from_the_start_to_the_steps(kagzi_env, spans):
    from opentelemetry import trace

    kagzi_env.worker(parent)
    with trace.get_tracer("test").start_as_current_span("request") as request:
        run = kagzi_env.client.start(parent)
    inner = run.result(20)
    kagzi_env.stop_workers()
    by_name = {s.name: s for s in spans.get_finished_spans()}
    activation, step, bad = by_name["workflow parent"], by_name["step trace"], by_name["step bad"]
    assert activation.parent.span_id == request.get_span_context().span_id
    assert step.parent.span_id == activation.context.span_id
    assert step.context.trace_id == request.get_span_context().trace_id
    assert f"{step.context.span_id:016x}" in inner, "code of a step has its span as the current one"
    assert (bad.status.description, list(bad.events)) == ("sort", [])
    assert activation.attributes["kagzi.outcome"] == "finished"
    assert activation.attributes["kagzi.run_id"] == run.id


def test_without_tracing_nothing_is_sent(kagzi_env, monkeypatch):
    monkeypatch.setattr(_trace, "_trace", None)
    assert _trace.traceparent() == ""
    kagzi_env.worker(parent)
    assert kagzi_env.client.start(parent).result(20) == ""


@kagzi.workflow
async def careless() -> str:
    time.time()
    random.randint(1, 6)
    datetime.datetime.now()
    uuid.uuid4()
    time.monotonic()
    open("/dev/null").close()
    datetime.date.today()
    await kagzi.do("s", time.time)
    return str(kagzi.random().random()) + str(kagzi.now()) + str(kagzi.uuid())


@kagzi.workflow
async def careful() -> str:
    await kagzi.do("s", lambda: [time.time(), random.random(), uuid.uuid4()])
    kagzi.logger().info("has a time")
    logging.getLogger("kagzi.x").warning("has a time")
    kagzi.random().randint(1, 6)
    random.Random(1).random()
    return str(kagzi.now()) + str(kagzi.uuid())


def test_clocks_and_chance_in_workflow_code_are_reported_with_the_line(kagzi_env, caplog):
    worker = kagzi_env.worker(careless, careful)
    kagzi_env.client.start(careful).result(20)
    assert worker.reporter.found == []
    kagzi_env.client.start(careless).result(20)
    kagzi_env.client.start(careless).result(20)
    at = careless.fn.__code__.co_firstlineno + 2
    assert [(f.split(" ")[0], f.split("calls ")[1].split(",")[0]) for f in worker.reporter.found] == [
        (f"{__file__}:{at + n}:", what) for n, what in enumerate((
            "time.time()", "random.getrandbits()", "datetime.now()", "os.urandom()", "time.monotonic()", "open()",
            "date.today()"))]
    assert "write kagzi.now(), or read the clock in a step" in caplog.text


@pytest.mark.parametrize(("dev", "there"), [("1", True), ("", False)])
def test_outside_of_tests_they_are_reported_if_asked_for(monkeypatch, dev, there):
    monkeypatch.setenv("KAGZI_DEV", dev)
    assert (kagzi.Worker(careful, profile="off").reporter is not None) is there
