#!/usr/bin/env bash
# Checks style, types and generated code of the SDK, and builds its wheel: check.sh PYTHON FOLDER, with the Python that venv.sh
# prints and the folder for the wheel. What mypy knows of unchanged files stays beside that Python.
set -euo pipefail
cd "$(dirname "$0")"

python=$1 wheel=$2
bin=$(dirname "$python")
"$bin/ruff" check --no-cache .
"$bin/mypy" --cache-dir "$bin/../mypy" src/kagzi conformance/subject.py bench/bench_worker.py
"$bin/pyright" --pythonpath "$python"
"$python" generate.py --check
"$python" -m build --wheel --no-isolation --outdir "$wheel" .
rm -rf build
ls "$wheel"
