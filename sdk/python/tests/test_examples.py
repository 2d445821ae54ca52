"""Each example does what its text says."""

from __future__ import annotations

import gzip
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import kagzi
from kagzi.testing import Env, Server

FOLDER = Path(__file__).resolve().parent.parent / "examples"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_hello(kagzi_env):
    m = load("hello")
    run = kagzi_env.start(m.greet, "Ada", always_suspend=True)
    assert kagzi_env.result(run) == m.Greeting("hello Ada", f"{run.id}/send")  # the pause passes in no time


def test_hello_sends_again(kagzi_env):
    m = load("hello")
    kagzi_env.replace("compose", lambda name: f"hi {name}")
    kagzi_env.replace("send", lambda text: m.Greeting(text, "") if kagzi.attempt() == 3 else 1 / 0)
    assert kagzi_env.run(m.greet, "Ada").text == "hi Ada"


def test_saga(kagzi_env, monkeypatch):
    m = load("saga")
    monkeypatch.setattr(m, "COOL_OFF", 0.05)
    kagzi_env.worker(m.process)
    assert kagzi_env.client.start(m.process, m.Order("1")).result(20) == m.Receipt("charged 1", "shipped 1")
    run = kagzi_env.client.start(m.process, m.Order("2", "piano"))
    with pytest.raises(kagzi.RunError, match="too heavy"):
        run.result(20)
    assert [s.name for s in run.steps()][-2:] == ["release", "refund"]
    monkeypatch.setattr(m, "COOL_OFF", 60.0)
    run = kagzi_env.client.start(m.process, m.Order("3"))
    kagzi_env.waits(run)
    run.cancel()
    assert run.wait(20).status == "CANCELLED"
    assert [s.name for s in run.steps()][-2:] == ["release", "refund"]


def test_approval(kagzi_env):
    m = load("approval")
    kagzi_env.worker(m.purchase)
    for approved, text in ((True, "a bicycle was bought for Ada"), (False, "a bicycle was declined by Ada")):
        run = kagzi_env.client.start(m.purchase, "a bicycle")
        kagzi_env.waits(run)
        assert run.get().note == "waits for a decision"
        run.signal("decision", m.Decision(approved, "Ada"))
        assert run.result(20) == text
    assert kagzi_env.run(m.purchase, "a boat") == "nobody decided about a boat"  # after two days


def test_fanout(kagzi_env):
    m = load("fanout")
    kagzi_env.worker(m.count_all, m.count)
    report = kagzi_env.client.start(m.count_all, ["one two\nthree", "", "four"]).result(20)
    assert report == m.Report(4, ["the text is empty"])


def test_schedule(kagzi_env):
    m = load("schedule")
    kagzi_env.worker(m.report)
    s = m.plan(kagzi_env.client)
    assert m.plan(kagzi_env.client).id == s.id
    assert s.get().time_zone == "Europe/Berlin"
    assert s.trigger().result(20).startswith("report of 20")


def test_agent(kagzi_env):
    m = load("agent")
    run = kagzi_env.start(m.answer, "What is the weather in Oslo?", always_suspend=True)
    assert run.result(20) == "The answer is: 12 degrees in Oslo"
    assert [s.name for s in run.steps()] == ["model", "tool:weather", "model:2"]


def test_pipeline(kagzi_env, tmp_path):
    m = load("pipeline")
    m.OUT = tmp_path
    file = tmp_path / "file.txt"
    file.write_text("text")
    kagzi_env.worker(m.compress)
    first, second = m.add(kagzi_env.client, [str(file)]), m.add(kagzi_env.client, [str(file)])
    assert first[0].id == second[0].id
    assert gzip.decompress(Path(first[0].result(20).stored).read_bytes()) == b"text"


def test_twoservers_counts(kagzi_env, monkeypatch):
    m = load("twoservers")
    monkeypatch.setattr(m, "PAUSE", 0.05)
    worker = kagzi_env.worker(m.countdown)
    assert kagzi_env.client.start(m.countdown, 3).result(20) == [worker.id] * 3


@pytest.mark.skipif("KAGZI_TEST_POSTGRES" not in os.environ, reason="KAGZI_TEST_POSTGRES names no Postgres")
def test_twoservers_goes_on_at_the_other_server(monkeypatch):
    m = load("twoservers")
    monkeypatch.setattr(m, "PAUSE", 0.2)
    url = os.environ["KAGZI_TEST_POSTGRES"]
    first, second = Server(database=url), Server(database=url)
    at_first, at_second = Env(first), Env(second)
    at_second.client.close()
    at_second.namespace = at_first.namespace
    at_second.client = kagzi.Client(profile="off", address=second.address, namespace=at_first.namespace)
    try:
        at_first.worker(m.countdown, worker_id="first", drain_timeout=0.0)
        run = at_first.client.start(m.countdown, 4)
        run = at_second.client.run(run.id)
        at_second.until(lambda: any(s.name == "second" and s.settled > 0 for s in run.steps()))
        first.stop(kill=True)
        at_first.stop_workers()
        at_second.worker(m.countdown, worker_id="second")
        counted = run.result(60)
        assert len(counted) == 4
        assert (counted[0], counted[-1]) == ("first", "second")
    finally:
        at_second.close()
        at_first.close()
        second.close()
        first.close()


def test_the_snippets_of_the_guide(kagzi_env):
    s = load("snippets")
    measured = s.Measured()
    kagzi_env.worker(s.pay, s.prepare, s.approve, s.ledger, s.deliver, interceptors=[measured])
    start = kagzi_env.client.start
    assert kagzi_env.result(start(s.pay, "visa")) == "visa charge"
    assert kagzi_env.result(start(s.pay, "declined")) == "another card is needed"
    assert kagzi_env.result(s.start_order(kagzi_env.client, "o-1")) == ["o-1 is packed", "invoice for o-1"]
    assert kagzi_env.result(start(s.approve, "o-2")) == "nobody answered for o-2"
    run = start(s.approve, "o-3")
    run.signal("answer", True)
    assert run.result(20) == "o-3 approved: True"
    assert kagzi_env.result(start(s.deliver, "o-4")) == "parcel of o-4"
    assert measured.began == measured.ended == 6
    week = start(s.ledger, s.Total())
    kagzi_env.until(lambda: kagzi_env.jump() and week.get().continued_as_run_id)
    following = kagzi_env.client.get(week.get().continued_as_run_id)
    assert following.input(s.Total) == s.Total(7, 7)
    kagzi_env.client.run(following.run_id).terminate()
    assert s.worker("1", "a").queue == "orders"
