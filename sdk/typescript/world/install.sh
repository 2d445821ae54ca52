#!/usr/bin/env bash
# Installs what the lock file names, unless it is there, and builds the world with its tests. Run ../install.sh first.
# Exit code 77: its packages cannot be had, or Node is too old here.
set -euo pipefail
cd "$(dirname "$0")"

if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; then
	echo 'there is no Node 20.19 or later here' >&2
	exit 77
fi
if ! cmp -s package-lock.json node_modules/.kagzi-installed; then
	npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2 || exit 77
	cp package-lock.json node_modules/.kagzi-installed
fi
PATH=$PWD/../node_modules/.bin:$PATH npm run --silent build
