"""The Python part of sdk/examples/mixed: assesses a claim with a model, and lets a TypeScript workflow review it.

python examples/assess.py   runs a worker
"""

import logging
from dataclasses import dataclass
from datetime import timedelta

import kagzi

LIMIT_COMES_WITHIN = timedelta(minutes=10)


@dataclass
class Claim:
    id: str
    text: str


@dataclass
class Review:
    approved: bool
    by: str


@dataclass
class Assessment:
    label: str
    amount: int
    review: Review


@kagzi.step(retry=kagzi.Retry(attempts=5), timeout=60)
def classify(text: str) -> str:
    """Stands for a model that runs in this process, or for one over HTTP."""
    return "water damage" if "water" in text.lower() else "other"


@kagzi.workflow(queue="assess")
async def assess(claim: Claim) -> Assessment:
    label = await classify(claim.text)
    # The child is TypeScript: a type's name is all that Python knows of it.
    review = await kagzi.start_child("review", "review", {"claim": claim.id, "label": label}, id=f"review:{claim.id}",
                                     queue="review", type=Review)
    limit = await kagzi.wait_signal("limit", int, LIMIT_COMES_WITHIN)  # from the Go parent
    amount = min(limit, 1200 if label == "water damage" else 100)

    def offer() -> None:
        with kagzi.Client() as client:
            client.run(review.run_id).signal("offer", amount, id=f"offer:{claim.id}")

    await kagzi.do("offer", offer)
    return Assessment(label, amount, await review.result())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    kagzi.serve(assess)
