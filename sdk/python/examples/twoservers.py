"""Counts down on two servers that share one Postgres. A run goes on at the other one when a server or worker is killed.

$DB is the address of an empty database. Each line runs in a terminal of its own:

kagzi server --db "$DB" --listen 127.0.0.1:50051 --http off
kagzi server --db "$DB" --listen 127.0.0.1:50061 --http off
WORKER=one KAGZI_ADDRESS=127.0.0.1:50051 python examples/twoservers.py
WORKER=two KAGZI_ADDRESS=127.0.0.1:50061 python examples/twoservers.py
KAGZI_ADDRESS=127.0.0.1:50061 python examples/twoservers.py start 30   prints who took each step
"""

import logging
import os
import sys

import kagzi

PAUSE = 1.0  # seconds


@kagzi.workflow(queue="countdowns")
async def countdown(n: int) -> list[str]:
    """Returns the worker that took each step, in order."""
    workers: list[str] = []
    while len(workers) < n:
        worker = kagzi.info().worker_id  # of this activation; steps that are recorded keep theirs
        workers.append(await kagzi.do("count", lambda worker=worker: worker))
        await kagzi.sleep("second", PAUSE)  # afterwards whichever worker is free goes on
    return workers


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    if sys.argv[1:2] == ["start"]:
        run = kagzi.Client().start(countdown, int(sys.argv[2]))
        print("started", run.id)
        print("counted by", ", ".join(run.result()))  # the wait outlasts restarts of the server
    else:
        kagzi.serve(countdown, worker_id=os.environ.get("WORKER", ""))
