"""The Python SDK's worker for the bench: tui/bench/WORKERS.md says what it has to do.

kagzi bench --workload W1,W2,W3,W5 --worker 'python sdk/python/bench/bench_worker.py'
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import zlib
from dataclasses import dataclass

import kagzi

BLOB = 64 << 10
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" * (BLOB // 64)


@dataclass
class Job:
    """The input of most types."""

    seed: int
    steps: int


async def value(seed: int, i: int) -> int:
    """The code of a step."""
    return seed + i


async def blob(seed: int, i: int) -> str:
    """The code of a step of W5: 64 KiB as JSON."""
    head = f"{seed}/{i}:"
    return head + LETTERS[:BLOB - 2 - len(head)]


@kagzi.workflow(name="bench.empty")
async def empty(seed: int) -> int:
    return seed


@kagzi.workflow(name="bench.steps")
async def steps(job: Job) -> int:
    total = 0
    for i in range(job.steps):
        total += await kagzi.do(f"step-{i + 1}", value, job.seed, i)
    return total


@kagzi.workflow(name="bench.parallel")
async def parallel(job: Job) -> int:
    return sum(await asyncio.gather(*(kagzi.do(f"step-{i + 1}", value, job.seed, i) for i in range(job.steps))))


@kagzi.workflow(name="bench.blobs")
async def blobs(job: Job) -> int:
    total = 0
    for i in range(job.steps):
        total = zlib.crc32((await kagzi.do(f"step-{i + 1}", blob, job.seed, i)).encode(), total)
    return total


SERVED = {w.name: w for w in (empty, steps, parallel, blobs)}


def main() -> None:
    wanted = os.environ["KAGZI_BENCH_TYPES"].split(",")
    unknown = [name for name in wanted if name not in SERVED]
    if unknown:
        sys.exit(f"this worker does not serve {', '.join(unknown)}; measure other workloads with it")
    worker = kagzi.Worker(*(SERVED[name] for name in wanted), queue=os.environ["KAGZI_BENCH_QUEUE"],
                          max_concurrent=int(os.environ["KAGZI_BENCH_SLOTS"]), drain_timeout=2)

    def tell() -> None:
        worker.ready.wait()
        print("worker ready", flush=True)

    def follow() -> None:
        sys.stdin.read()  # the bench has ended
        os.kill(os.getpid(), signal.SIGTERM)

    for task in (tell, follow):
        threading.Thread(target=task, daemon=True).start()
    worker.run()


if __name__ == "__main__":
    main()
