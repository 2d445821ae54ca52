#!/usr/bin/env bash
# Installs what the lock file names, unless it is there, and builds the SDK with its tests and examples.
# Exit code 77: there is no Node 20 or later here, or its packages cannot be had.
set -euo pipefail
cd "$(dirname "$0")"

# Tests of several packages may want this at the same time.
if command -v flock >/dev/null; then
	exec 9>.install-lock
	flock 9
fi

if ! node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' 2>/dev/null; then
	echo 'there is no Node 20 or later here' >&2
	exit 77
fi
if ! cmp -s package-lock.json node_modules/.kagzi-installed; then
	npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2 || exit 77
	cp package-lock.json node_modules/.kagzi-installed
fi
# What is built is left alone while it is current: tests of other packages may be running it.
sources=(src conformance examples bench tests package.json tsconfig.json tsconfig.programs.json)
if [ ! -e build/.kagzi-built ] || [ ! -e dist/index.js ] || [ -n "$(find "${sources[@]}" -newer build/.kagzi-built -print -quit)" ]; then
	touch .kagzi-building # a change from now on is built the next time
	npm run --silent build
	mv .kagzi-building build/.kagzi-built
fi
