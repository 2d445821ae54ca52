"""Answers questions with a language model and tools. Each call of either is a step: after a crash the agent goes on
with the recorded answers and pays for none twice.

python examples/agent.py                   runs a worker, with a model of its own that stands for a real one
python examples/agent.py ask QUESTION...   starts a run and prints the answer
"""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass

import kagzi

MAX_TURNS = 8


@dataclass
class ToolCall:
    name: str
    input: str


@dataclass
class Message:
    role: str  # user, model or tool
    text: str = ""
    tool: ToolCall | None = None


TOOLS: dict[str, Callable[[str], str]] = {"weather": lambda place: f"12 degrees in {place}"}


@kagzi.step(retry=kagzi.Retry(attempts=5), timeout=120)
async def model(conversation: list[Message]) -> Message:
    """Stands for a model over HTTP; send it kagzi.idempotency_key(), and raise kagzi.RetryAfter at status 429."""
    last = conversation[-1]
    kagzi.note(f"turn {len(conversation)}")
    if last.role == "tool":
        return Message("model", f"The answer is: {last.text}")
    return Message("model", tool=ToolCall("weather", last.text.split()[-1].strip("?")))


@kagzi.workflow(queue="agents")
async def answer(question: str) -> str:
    conversation = [Message("user", question)]  # every replay builds it again from the recorded results
    for _ in range(MAX_TURNS):
        reply = await model(conversation)
        conversation.append(reply)
        if reply.tool is None:
            return reply.text
        conversation.append(Message("tool", await call(reply.tool)))
    raise kagzi.NonRetryable(f"no answer within {MAX_TURNS} turns")


async def call(wish: ToolCall) -> str:
    """Runs a tool. The model hears of a failure, and may try something else."""
    tool = TOOLS.get(wish.name)
    if tool is None:  # a name that the model made up is no good name for a step
        return "error: there is no tool of that name"
    try:
        return await kagzi.do(f"tool:{wish.name}", tool, wish.input)
    except kagzi.Cancelled:
        raise
    except kagzi.StepError as e:
        return f"error: {e.message}"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    if sys.argv[1:2] == ["ask"]:
        print(kagzi.Client().start(answer, " ".join(sys.argv[2:])).result())
    else:
        kagzi.serve(answer)
