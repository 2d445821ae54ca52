"""Measures a Python worker of one process against a private server on this machine.

python bench/measure.py [RUNS]   all workloads; RUNS of W2 (2000)
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import kagzi
from kagzi.testing import Server

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(pid: int) -> float:
    """Returns MB of memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1e6


def used(pid: int) -> float:
    """Returns the seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def many(client: kagzi.Client, pid: int, name: str, runs: int, n: int) -> str:
    """Runs many at once; returns runs and steps a second, and processor time of the worker for each step."""
    handles, spent, began = [], used(pid), time.perf_counter()
    for at in range(0, runs, 500):
        handles += client.start_many(name, [n] * min(500, runs - at), queue="bench")
    for run in handles:
        assert not isinstance(run, kagzi.ServerError), run
        assert run.result(600) == "ok"
    took, spent = time.perf_counter() - began, used(pid) - spent
    calls = max(runs * n, runs)
    return f"{runs / took:8.0f} runs/s {runs * n / took:8.0f} steps/s {1e6 * spent / calls:6.0f} us of the worker each"


def main() -> None:
    """Measures, and prints a line for each workload."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    server = Server(lease=30)
    worker = subprocess.Popen([sys.executable, str(Path(__file__).with_name("worker.py"))], env={
        **os.environ, "KAGZI_ADDRESS": server.address, "KAGZI_CONFIG": "off"})
    client = kagzi.Client(profile="off", address=server.address)
    try:
        client.start("w1", 0, queue="bench").result(60)
        time.sleep(1)
        print(f"load {os.getloadavg()[0]:.1f}; idle {resident(worker.pid):.0f} MB", flush=True)
        print("W1", many(client, worker.pid, "w1", runs, 0), flush=True)
        print("W2", many(client, worker.pid, "w2", runs, 10), flush=True)
        times = []
        for _ in range(300):
            began = time.perf_counter()
            client.start("w2", 1, queue="bench").result(60)
            times.append(1000 * (time.perf_counter() - began))
        times.sort()
        print(f"W3 p50 {statistics.median(times):.2f} ms, p99 {times[-3]:.2f} ms", flush=True)
        print("W5", many(client, worker.pid, "w5", max(runs // 10, 1), 10), flush=True)
        print(f"after that {resident(worker.pid):.0f} MB; load {os.getloadavg()[0]:.1f}")
    finally:
        worker.terminate()
        worker.wait(30)
        server.close()


if __name__ == "__main__":
    main()
