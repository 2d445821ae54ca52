"""Processes orders: charges, reserves, ships. When a step fails for good, or the run is cancelled, it undoes what was
done, last first.

python examples/saga.py                     runs a worker
python examples/saga.py start ORDER [SKU]   starts a run; the SKU "piano" cannot be shipped
"""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass

import kagzi

COOL_OFF = 10.0  # seconds to cancel in


@dataclass
class Order:
    id: str
    sku: str = "book"


@dataclass
class Receipt:
    charge: str
    parcel: str


def say(what: str, o: Order) -> str:
    """Stands for the bank, the warehouse and the carrier. Undoing what was never done must be harmless."""
    logging.info("%s %s of order %s", what, o.sku, o.id)
    return f"{what} {o.id}"


def ship(o: Order) -> str:
    if o.sku == "piano":
        raise kagzi.NonRetryable("carrier: too heavy")
    return say("shipped", o)


@kagzi.workflow(name="order", queue="orders")
async def process(o: Order) -> Receipt:
    undos: list[tuple[str, Callable[[Order], object]]] = []  # every replay builds it again
    try:
        undos.append(("refund", lambda o: say("refunded", o)))  # first: a step cut short may have had its effect
        charge = await kagzi.do("charge", lambda: say("charged", o))
        undos.append(("release", lambda o: say("released", o)))
        await kagzi.do("reserve", lambda: say("reserved", o))
        await kagzi.sleep("cool-off", COOL_OFF)  # returns at once when the run is cancelled
        return Receipt(str(charge), await kagzi.do("ship", ship, o))
    except kagzi.StepError:  # Cancelled, too
        async with kagzi.cleanup():
            for name, undo in reversed(undos):
                await kagzi.do(name, undo, o, retry=kagzi.Retry(attempts=-1))  # until it works
        raise


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    if sys.argv[1:2] == ["start"]:
        order = Order(*sys.argv[2:4])
        print(kagzi.Client().start(process, order, id=order.id).result())
    else:
        kagzi.serve(process)
