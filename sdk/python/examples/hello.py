"""The smallest program: a workflow of two steps with a pause between them.

python examples/hello.py              runs a worker until SIGTERM or Ctrl-C
python examples/hello.py start NAME   starts a run and waits for its result
"""

import logging
import sys
from dataclasses import dataclass

import kagzi

PAUSE = 10.0  # seconds


@dataclass
class Greeting:
    text: str
    key: str  # the idempotency key under which it was sent


@kagzi.step
def compose(name: str) -> str:
    return f"hello {name}"


@kagzi.step(retry=kagzi.Retry(attempts=5))
def send(text: str) -> Greeting:
    """Stands for a mail server. A real one would refuse a second mail with the same key."""
    logging.info("sending %r, attempt %d", text, kagzi.attempt())
    return Greeting(text, kagzi.idempotency_key())


@kagzi.workflow(queue="hello")
async def greet(name: str) -> Greeting:
    text = await compose(name)
    await kagzi.sleep("pause", PAUSE)  # holds no worker, survives restarts
    return await send(text)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    if sys.argv[1:2] == ["start"]:
        print(kagzi.Client().start(greet, sys.argv[2]).result().text)
    else:
        kagzi.serve(greet)
