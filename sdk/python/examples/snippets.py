"""The snippets of the guide in sdk/guide that no other example has; tests/test_examples.py runs them."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import kagzi


class Declined(Exception):
    kagzi_type = "card_declined"  # the type under which it is recorded


def bank(card: str, key: str) -> str:
    """Stands for a bank."""
    if card == "declined":
        raise Declined("card declined")
    return f"{card} {key.rpartition('/')[2]}"


@kagzi.step(retry=kagzi.Retry(attempts=10, non_retryable=["card_declined"]), timeout=60)
def charge(card: str) -> str:
    try:
        return bank(card, kagzi.idempotency_key())
    except ConnectionError as e:
        raise kagzi.RetryAfter(str(e), timedelta(minutes=5)) from e  # in place of the policy's delay


@kagzi.workflow
async def pay(card: str) -> str:
    try:
        return await charge(card)
    except kagzi.StepError as e:
        if e.type == "card_declined":
            return "another card is needed"
        raise


@kagzi.workflow
async def prepare(order: str) -> list[str]:
    async def packed() -> str:
        await kagzi.sleep("pack", timedelta(hours=1))
        return f"{order} is packed"

    return await asyncio.gather(packed(), kagzi.do("invoice", lambda: f"invoice for {order}"))


@kagzi.workflow
async def approve(order: str) -> str:
    answer = asyncio.create_task(kagzi.wait_signal("answer", bool))
    late = asyncio.create_task(kagzi.sleep("late", timedelta(days=2)))
    if (await kagzi.first(answer, late)).task is late:
        return f"nobody answered for {order}"
    return f"{order} approved: {await answer}"


@dataclass
class Total:
    days: int = 0
    sum: int = 0


@kagzi.workflow
async def ledger(total: Total) -> Total:
    for _ in range(7):
        total.sum += await kagzi.do("collect", lambda: 1)
        total.days += 1
        await kagzi.sleep("night", timedelta(days=1))
    return kagzi.continue_as_new(total)  # raises, and has to pass


@kagzi.workflow
async def deliver(order: str) -> str:
    if kagzi.patched("check-address"):
        await kagzi.do("check-address", lambda: None)
    return await kagzi.do("ship", lambda: f"parcel of {order}")


def worker(version: str, zone: str) -> kagzi.Worker:
    return kagzi.Worker(
        prepare, deliver, queue="orders", queues=["orders-bulk"], max_concurrent=50, type_limits={"deliver": 5},
        version=version, labels={"zone": zone}, capabilities={"tool:ffmpeg": "7"}, drain_timeout=25)


def start_order(client: kagzi.Client, id: str) -> kagzi.Run[list[str]]:
    return client.start(prepare, id, id=f"order-{id}", execution_timeout=timedelta(days=1), tags={"customer": "ada"})


class Measured(kagzi.Interceptor):
    """Counts runs, and takes the time of steps: ``Worker(…, interceptors=[Measured()])``."""

    began, ended, steps = 0, 0, 0.0

    async def run(self, activation: kagzi.Activation, next: Any) -> Any:
        self.began += not (activation.replays or activation.check)
        result = await next()  # does not return when the run is parked
        self.ended += not activation.check
        return result

    @contextmanager
    def step(self, attempt: kagzi.StepAttempt) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.steps += time.monotonic() - began
