"""Makes a report every night at half past two in Berlin, summer and winter.

python examples/schedule.py           makes or updates the schedule, and runs a worker
python examples/schedule.py trigger   starts one report now, beside the ticks, and prints it
"""

import logging
import sys

import kagzi


@kagzi.workflow(queue="reports")
async def report() -> str:
    at = kagzi.info().scheduled_at or kagzi.now()  # the tick, also where the run starts late
    return await kagzi.do("write", lambda: f"report of {at:%Y-%m-%d %H:%M} UTC")


def plan(client: kagzi.Client) -> kagzi.Schedule:
    """Makes the schedule, or makes it what the code says."""
    return client.create_schedule(report, "30 2 * * *", name="nightly-report", time_zone="Europe/Berlin",
                                  overlap="skip", or_update=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    schedule = plan(kagzi.Client())
    if sys.argv[1:2] == ["trigger"]:
        print(schedule.trigger().result())
    else:
        kagzi.serve(report)
