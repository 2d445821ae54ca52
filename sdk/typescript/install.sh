#!/usr/bin/env bash
# Installs what the lock file names, unless it is there, and builds the SDK with its tests and examples.
# Exit code 77: there is no Node 20 or later here, or its packages cannot be had.
set -euo pipefail
cd "$(dirname "$0")"

if ! node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' 2>/dev/null; then
	echo 'there is no Node 20 or later here' >&2
	exit 77
fi
if ! cmp -s package-lock.json node_modules/.kagzi-installed; then
	npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2 || exit 77
	cp package-lock.json node_modules/.kagzi-installed
fi
npm run --silent build
