"""The worker of measure.py: one process, with the workloads of `kagzi bench`."""

import os

import kagzi

KIB64 = "x" * (64 << 10)


@kagzi.step
async def small(i: int) -> int:
    return i


@kagzi.step
async def large(i: int) -> str:
    return KIB64


@kagzi.workflow(queue="bench")
async def w1(n: int) -> str:
    return "ok"


@kagzi.workflow(queue="bench")
async def w2(n: int) -> str:
    for i in range(n):
        await small(i)
    return "ok"


@kagzi.workflow(queue="bench")
async def w5(n: int) -> str:
    for i in range(n):
        await large(i)
    return "ok"


worker = kagzi.Worker(w1, w2, w5, max_concurrent=int(os.environ.get("SLOTS", "100")), build_id="bench")

if __name__ == "__main__":
    if os.environ.get("PROFILE"):
        import cProfile

        cProfile.run("worker.run()", os.environ["PROFILE"])
    else:
        worker.run()
