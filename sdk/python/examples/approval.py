"""Waits for a person: a purchase goes on when somebody has decided, and is dropped when nobody has within two days.

python examples/approval.py                      runs a worker
python examples/approval.py start ORDER          starts a run
python examples/approval.py decide ORDER yes|no  delivers the decision, and prints how the run ended
"""

import getpass
import logging
import sys
from dataclasses import dataclass
from datetime import timedelta

import kagzi

LIMIT = timedelta(days=2)


@dataclass
class Decision:
    approved: bool
    by: str


@kagzi.step
def ask(order: str) -> None:
    logging.info("please decide about %s", order)


@kagzi.workflow(queue="purchases")
async def purchase(order: str) -> str:
    await ask(order)
    kagzi.note("waits for a decision")  # shown in lists of runs
    try:
        decision = await kagzi.wait_signal("decision", Decision, LIMIT)
    except kagzi.TimedOut:
        return f"nobody decided about {order}"
    if not decision.approved:
        return f"{order} was declined by {decision.by}"
    return await kagzi.do("buy", lambda: f"{order} was bought for {decision.by}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    match sys.argv[1:]:
        case ["start", order]:
            print("started", kagzi.Client().start(purchase, order, id=order).id)
        case ["decide", order, answer]:
            client = kagzi.Client()
            run = client.run(client.get_by_id(order).run_id, str)
            run.signal("decision", Decision(answer == "yes", getpass.getuser()))
            print(run.result())
        case _:
            kagzi.serve(purchase)
