#!/usr/bin/env bash
# Makes a virtual environment with what the checks and tests of the SDK need, at the versions of requirements-dev.txt, and
# prints the path of its Python. It lies in the user's cache, and is made again when the versions change.
# Exit code 77: there is no Python 3.11 or later here.
set -euo pipefail
cd "$(dirname "$0")"

for python in "${KAGZI_PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
	[ -n "$python" ] && "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
	python=
done
[ -n "$python" ] || { echo 'there is no Python 3.11 or later here' >&2; exit 77; }

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
sum=$(cat requirements-dev.txt pyproject.toml <(pwd) | sha256sum | cut -c 1-16)
place=${XDG_CACHE_HOME:-$HOME/.cache}/kagzi/python-$version-$sum
# Tests of several packages may want this at the same time.
mkdir -p "$(dirname "$place")"
if command -v flock >/dev/null; then
	exec 9>"$place.lock"
	flock 9
fi
if [ ! -e "$place/whole" ]; then
	rm -rf "$place"
	"$python" -m venv "$place"
	"$place/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt >&2
	"$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . >&2
	touch "$place/whole"
fi
echo "$place/bin/python"
