"""Counts the words of many texts in parallel: a child run for each text, and a report that says which of them failed.

python examples/fanout.py                 runs a worker
python examples/fanout.py start TEXT...   starts a run and waits for its report; an empty text fails
"""

import asyncio
import logging
import sys
from dataclasses import dataclass, field

import kagzi


@dataclass
class Report:
    words: int = 0
    failed: list[str] = field(default_factory=list)  # why, one for each text that could not be counted


@kagzi.workflow(queue="words")
async def count(text: str) -> int:
    """The child. Its steps are branches of one run; a child would be too much for a line."""
    if not text:
        raise kagzi.Failed("the text is empty")
    lines = text.split("\n")
    counts = await asyncio.gather(*(kagzi.do(f"line-{i}", lambda line=line: len(line.split()))
                                    for i, line in enumerate(lines)))
    return sum(counts)


@kagzi.workflow(queue="words")
async def count_all(texts: list[str]) -> Report:
    children = [await kagzi.start_child(f"count-{i}", count, text, parent_close="cancel")
                for i, text in enumerate(texts)]
    try:
        await kagzi.wait_all(children)  # wakes the run only once
    except (kagzi.RunError, ExceptionGroup):
        pass  # the report says which
    report = Report()
    for child in children:
        try:
            report.words += await child  # known already: this does not wait
        except kagzi.RunError as e:
            report.failed.append(e.message)
    return report


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    if sys.argv[1:2] == ["start"]:
        print(kagzi.Client().start(count_all, sys.argv[2:]).result())
    else:
        kagzi.serve(count_all, count, max_concurrent=20)
