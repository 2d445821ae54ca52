"""The Python SDK's program for the conformance suite: proto/CONFORMANCE.md says what it has to do.

kagzi conformance -- python sdk/python/conformance/subject.py
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import kagzi

Op = dict[str, Any]

GATE = os.environ.get("KAGZI_CONFORMANCE_GATE", "")
VARIANT = int(os.environ.get("KAGZI_CONFORMANCE_VARIANT") or 0)


@dataclass
class Input:
    """The input of a run."""

    ops: list[Op] = field(default_factory=list)


class Return(Exception):
    """Ends a program early."""


class Panic(BaseException):
    """What no application throws on purpose."""


def failure(o: dict[str, Any]) -> kagzi.Failed:
    """Makes an error of the application."""
    after = o.get("retry_after_ms", 0)
    return kagzi.Failed(o.get("message", ""), type=o.get("type", ""), retryable=not o.get("non_retryable", False),
                        retry_after=after / 1000 if after > 0 else None)


def number(value: Any) -> int:
    """Reads a whole number, as a typed language does."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise kagzi.DecodeError(f"want a whole number, got {value!r:.50}")
    return value


def ask(question: dict[str, Any]) -> dict[str, Any]:
    """Asks the gate, and waits for as long as it takes."""
    data = json.dumps(question, separators=(",", ":")).encode()
    request = urllib.request.Request(GATE, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        said: dict[str, Any] = json.load(answer)
        return said


class Program:
    """What all branches of a program share."""

    def __init__(self) -> None:
        self.trace: list[list[Any]] = []
        self.vars: dict[str, Any] = {}
        self.value: Any = None
        self.children: dict[str, kagzi.Child[Any]] = {}

    async def all(self, ops: list[Op]) -> None:
        """Executes ops in turn."""
        for o in ops:
            act = getattr(self, "do_" + o["op"], None)
            if act is None:
                raise kagzi.NonRetryable(f"the program has an unknown op {o['op']!r}")
            made = act(o)
            if made is not None:
                await made

    async def got(self, label: str, into: str, call: Awaitable[Any]) -> Any:
        """Appends to the trace what a call returned, and sets the variable into."""
        try:
            value = await call
        except (kagzi.StepError, kagzi.RunError) as e:
            self.trace.append([label, {"code": e.code, "type": e.type}])
            raise
        except ExceptionGroup as e:  # of several children
            one = e.exceptions[0]
            assert isinstance(one, kagzi.RunError)
            self.trace.append([label, {"code": one.code, "type": one.type}])
            raise one from e
        self.trace.append([label, value])
        if into:
            self.vars[into] = value
        return value

    # Steps

    async def step(self, o: Op, name: str) -> None:
        """Makes a step whose body asks the gate."""
        retry = None
        if o.get("retry") is not None:
            r = o["retry"]
            retry = kagzi.Retry(attempts=r.get("attempts", 0), initial=r.get("initial_ms", 0) / 1000,
                                max=r.get("max_ms", 0) / 1000, coefficient=r.get("coefficient", 0.0),
                                jitter=r.get("jitter", 0.0), non_retryable=r.get("non_retryable") or ())
        send = {v: self.vars.get(v) for v in o.get("send") or ()}
        timeout = o.get("timeout_ms", 0) / 1000 or None
        await self.got(name, o.get("into", ""), kagzi.do(
            name, typed(lambda: self.body(send), o.get("read", "")), retry=retry, timeout=timeout))

    def body(self, send: dict[str, Any]) -> Any:
        """Does what the gate says."""
        question: dict[str, Any] = {"key": kagzi.idempotency_key(), "attempt": kagzi.attempt()}
        if send:
            question["vars"] = send
        while True:
            a = ask(question)
            match a["do"]:
                case "return":
                    return a.get("value")
                case "fail":
                    raise failure(a)
                case "panic":
                    raise Panic(a.get("message", ""))
                case "call":
                    return asyncio.run(kagzi.do("inside", lambda: 1))
                case "start":
                    with kagzi.Client() as client:
                        return client.start("conformance", a["program"],
                                            queue=os.environ["KAGZI_CONFORMANCE_QUEUE"]).id
                case "wait":
                    while not kagzi.step_cancelled():
                        time.sleep(0.002)
                    raise kagzi.Failed("the step was ended", type="stopped")
                case "print":
                    print(a.get("text", ""), flush=True)
                case "exit":
                    os._exit(3)
                case other:
                    raise kagzi.NonRetryable(f"the gate said {other!r}")

    def do_step(self, o: Op) -> Awaitable[None]:
        return self.step(o, o.get("name", ""))

    async def do_each(self, o: Op) -> None:
        elements = self.vars.get(o["list"]) or []
        if not isinstance(elements, list) or not all(isinstance(e, str) for e in elements):
            raise kagzi.NonRetryable(f"variable {o['list']} is no list of texts")
        for element in elements:
            await self.step(o, o.get("prefix", "") + element)

    # Waits

    def do_sleep(self, o: Op) -> Awaitable[None]:
        return self.got(o.get("name", ""), "", kagzi.sleep(o.get("name", ""), o.get("ms", 0) / 1000))

    def do_sleep_until(self, o: Op) -> Awaitable[None]:
        return self.got(o.get("name", ""), "", kagzi.sleep_until(o.get("name", ""), datetime.fromisoformat(o["at"])))

    def do_signal(self, o: Op) -> Awaitable[None]:
        limit = o.get("limit_ms")
        kind = int if o.get("read") == "number" else Any
        return self.got(o.get("name", ""), o.get("into", ""), kagzi.wait_signal(
            o.get("name", ""), kind, None if limit is None or limit == 0 else limit / 1000))

    async def do_child(self, o: Op) -> None:
        started: Any = kagzi.start_child(o.get("name", ""), o.get("type") or "conformance", o["program"],
                                         id=o.get("external_id", ""), parent_close=o.get("close") or "abandon")
        try:
            child = await started
        except kagzi.StepError as e:
            self.trace.append([o.get("name", ""), {"code": e.code, "type": e.type}])
            raise
        if o.get("wait") is False:
            self.children[o.get("name", "")] = child
            return

        async def value() -> Any:
            return (await child.result())["value"]

        await self.got(o.get("name", ""), o.get("into", ""), value())

    def started(self, names: list[str]) -> list[kagzi.Child[Any]]:
        """Returns children that were started before."""
        for name in names:
            if name not in self.children:
                raise kagzi.NonRetryable(f"the program has started no child {name!r}")
        return [self.children[name] for name in names]

    async def do_wait_all(self, o: Op) -> None:
        children = self.started(o.get("names") or [])

        async def values() -> Any:
            return [out["value"] for out in await kagzi.wait_all(children)]

        await self.got("wait_all", "", values())

    # Branches

    def fork(self, body: list[Op]) -> asyncio.Task[None]:
        """Forks a branch."""
        return asyncio.get_running_loop().create_task(self.all(body))

    async def do_cycle(self, o: Op) -> None:
        """Forks two branches that wait for each other, and waits for both."""
        tasks: list[asyncio.Task[None]] = []

        async def other(i: int) -> None:
            await tasks[i]

        tasks += [asyncio.get_running_loop().create_task(other(i)) for i in (1, 0)]
        await self.wait(tasks)

    @staticmethod
    async def wait(tasks: list[asyncio.Task[None]]) -> None:
        """Waits for all branches, in order, and raises the first error."""
        first: BaseException | None = None
        for task in tasks:
            try:
                await task
            except (Exception, Panic, Return) as e:
                first = first or e
        if first is not None:
            raise first

    def do_branches(self, o: Op) -> Awaitable[None]:
        return self.wait([self.fork(body) for body in o.get("bodies") or []])

    async def do_first(self, o: Op) -> None:
        children = self.started(o.get("children") or [])
        tasks = [self.fork(body) for body in o.get("bodies") or []]
        first = await kagzi.first(*tasks, *children)
        self.trace.append(["first", first.index])
        if o.get("rest") == "wait":
            try:
                await self.wait(tasks)
            except (Exception, Panic):
                pass  # their results do not matter

    async def do_pool(self, o: Op) -> None:
        tasks: list[asyncio.Task[None]] = []
        busy: list[asyncio.Task[None]] = []
        for body in o.get("bodies") or []:
            if len(busy) == o["width"]:
                del busy[(await kagzi.first(*busy)).index]
            tasks.append(self.fork(body))
            busy.append(tasks[-1])
        await self.wait(tasks)

    # Control

    async def do_repeat(self, o: Op) -> None:
        for _ in range(o.get("times", 0)):
            await self.all(o.get("ops") or [])

    async def do_try(self, o: Op) -> None:
        try:
            await self.all(o.get("ops") or [])
        except Return:
            raise
        except (kagzi.Cancelled, kagzi.RunError) as e:
            if isinstance(e, kagzi.Cancelled) or e.with_parent:
                async with kagzi.cleanup():
                    await self.all(o.get("cancelled") or [])
                raise
            if o.get("catch") is None:
                raise
            await self.all(o["catch"])
        except (Exception, Panic):
            if o.get("catch") is None:
                raise
            await self.all(o["catch"])

    async def do_cleanup(self, o: Op) -> None:
        async with kagzi.cleanup():
            await self.all(o.get("ops") or [])

    def do_patched(self, o: Op) -> Awaitable[None]:
        return self.all(o.get("then" if kagzi.patched(o["id"]) else "else") or [])

    def do_variant(self, o: Op) -> Awaitable[None] | None:
        cases = o.get("cases") or []
        return self.all(cases[VARIANT]) if len(cases) > VARIANT else None

    def do_continue(self, o: Op) -> None:
        kagzi.continue_as_new(o["program"])

    def do_return(self, o: Op) -> None:
        self.value = o.get("value")
        raise Return

    def do_fail(self, o: Op) -> None:
        raise failure(o)

    def do_panic(self, o: Op) -> None:
        raise Panic(o.get("message", ""))

    def do_block(self, o: Op) -> None:
        time.sleep(o.get("ms", 0) / 1000)

    # Values

    def do_push(self, o: Op) -> None:
        self.vars[o["list"]] = [*(self.vars.get(o["list"]) or []), self.vars.get(o["var"])]

    def do_now(self, o: Op) -> None:
        self.vars[o["into"]] = kagzi.now().isoformat().replace("+00:00", "Z")

    def do_random(self, o: Op) -> None:
        self.vars[o["into"]] = kagzi.random().getrandbits(32)

    def do_uuid(self, o: Op) -> None:
        self.vars[o["into"]] = str(kagzi.uuid())

    def do_info(self, o: Op) -> None:
        i = kagzi.info()
        self.vars[o["into"]] = {"type": i.workflow_type, "queue": i.queue, "namespace": i.namespace,
                                "external_id": i.external_id, "version": i.version, "attempt": i.attempt}

    def do_note(self, o: Op) -> None:
        kagzi.note(o.get("text", ""))


def typed(body: Callable[[], Any], read: str) -> Callable[[], Any]:
    """Returns the body with the annotation that the program asks for."""
    if read != "number":
        return body

    def whole() -> int:
        return number(body())

    return whole


@kagzi.workflow
async def conformance(program: Input | None) -> dict[str, Any]:
    """Executes a program."""
    p = Program()
    try:
        await p.all(program.ops if program is not None else [])
    except Return:
        pass
    return {"trace": p.trace, "vars": p.vars, "value": p.value}


def main() -> None:
    """Runs the worker."""
    logging.basicConfig(level=os.environ.get("SUBJECT_LOG", "WARNING"), stream=sys.stderr)
    env = os.environ
    key = env.get("KAGZI_CONFORMANCE_AES", "")
    removed = env.get("KAGZI_CONFORMANCE_REMOVED_PATCHES", "")
    on: Any = env.get("KAGZI_CONFORMANCE_ON_DIVERGENCE") or "pause"
    if not GATE:
        sys.exit("KAGZI_CONFORMANCE_GATE is not set: `kagzi conformance -- COMMAND` starts this program")
    threading.stack_size(256 << 10)
    kagzi.serve(conformance, queue=env["KAGZI_CONFORMANCE_QUEUE"], build_id=env.get("KAGZI_CONFORMANCE_BUILD", ""),
                max_concurrent=100, threads=400, drain_timeout=10.0, on_divergence=on,
                removed_patches=removed.split(",") if removed else (),
                codec=kagzi.AESCodec({"k1": bytes.fromhex(key)}, "k1") if key else None)


if __name__ == "__main__":
    main()
