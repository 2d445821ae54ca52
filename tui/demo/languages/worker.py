"""The Python worker of `kagzi demo`: worker.py ADDRESS NAME LEDGER. It ends when its standard input does."""

import os
import sys
import threading
from pathlib import Path
from typing import Any

import kagzi

ADDRESS, NAME, LEDGER = sys.argv[1:4]


def enter(waits: bool) -> None:
    """Writes down that code of a step began. The first time it may wait to be killed, however slow the machine is."""
    run_id, _, step = kagzi.idempotency_key().partition("/")
    file = Path(LEDGER) / f"{run_id}.ledger"
    with file.open("a") as f:
        f.write(f"{step} {NAME} {os.getpid()}\n")
    if waits and sum(line.startswith(f"{step} ") for line in file.read_text().splitlines()) == 1:
        threading.Event().wait(60)


def model(text: str) -> str:
    """Stands for a language model."""
    enter(waits=True)
    return "water damage" if "water" in text else "other"


def offer(run_id: str, limit: int) -> int:
    enter(waits=False)
    amount = min(limit, 750)
    with kagzi.Client(profile="off", address=ADDRESS) as client:
        client.run(run_id).signal("offer", amount, id=f"offer:{run_id}")
    return amount


@kagzi.workflow(name="claim-assess", queue="demo-python")
async def assess(text: str) -> dict[str, Any]:
    label = await kagzi.do("model", model, text)
    review = await kagzi.start_child("review", "claim-review", label, queue="demo-typescript")
    limit = await kagzi.wait_signal("limit", int)
    await kagzi.do("offer", offer, review.run_id, limit)
    return {"label": label, "review": await review.result()}


worker = kagzi.Worker(assess, profile="off", address=ADDRESS, worker_id=NAME, handle_signals=False, drain_timeout=2)


def until_the_demo_ends() -> None:
    worker.ready.wait()
    print("worker ready", flush=True)
    sys.stdin.buffer.read()
    worker.stop()


threading.Thread(target=until_the_demo_ends, daemon=True).start()
worker.run()
