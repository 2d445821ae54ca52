"""The worker of the bench: `kagzi bench --worker` checks every result that it returns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).parent.parent / "bench" / "bench_worker.py"


def bench(tmp_path: Path, workloads: str) -> subprocess.CompletedProcess[str]:
    arguments = ["--workload", workloads, "--scale", "0.001", "--json", "--dir", str(tmp_path)]
    return subprocess.run([os.environ["KAGZI_BIN"], "bench", *arguments, "--worker", f'"{sys.executable}" "{WORKER}"'],
                          capture_output=True, text=True, timeout=120, check=False)


def test_the_bench_measures_the_python_worker(tmp_path: Path) -> None:
    ended = bench(tmp_path, "W1,W2,W3,W4,W5")
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert [w["workload"] for w in report["workloads"]] == ["W1", "W2", "W3", "W4", "W5"]
    assert str(WORKER) in report["worker"]


def test_a_type_that_the_worker_does_not_serve_is_named(tmp_path: Path) -> None:
    ended = bench(tmp_path, "W15")
    assert ended.returncode == 1
    assert "does not serve bench.parent" in ended.stderr
