#!/usr/bin/env bash
# Builds the .deb and the .rpm of one program, by nfpm.yaml. The same program gives the same bytes.
#
#   installer/package/nfpm.sh VERSION OS ARCH PROGRAM DIRECTORY
#
# For other systems than linux it does nothing: goreleaser calls it for every program that it builds. `go run ./installer/package files`
# must have written installer/package/files. SOURCE_DATE_EPOCH is the time of all files; left out it is that of the commit.
set -euo pipefail

[ $# = 5 ] || { echo 'usage: installer/package/nfpm.sh VERSION OS ARCH PROGRAM DIRECTORY' >&2; exit 64; }
[ "$2" = linux ] || exit 0
VERSION=${1#v} ARCH=$3 PROGRAM=$(realpath "$4")
directory=$(realpath -m "$5")
cd "$(dirname "$0")/../.."
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export VERSION ARCH PROGRAM SOURCE_DATE_EPOCH

nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
mkdir -p "$directory"
for kind in deb rpm; do
	CGO_ENABLED=0 GOOS='' GOARCH='' go run $nfpm package --config installer/package/nfpm.yaml --packager $kind \
		--target "$directory/kagzi_${VERSION}_linux_$ARCH.$kind"
done
