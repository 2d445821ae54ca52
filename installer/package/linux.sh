#!/usr/bin/env bash
# Builds the program and the packages of one version for this machine's architecture, with a bill of materials and the checksums of
# all, in an empty or missing directory. The same commit built twice gives the same bytes. goreleaser builds archives and other systems
# with the same flags: see .goreleaser.yml.
#
#   installer/package/linux.sh VERSION DIRECTORY
#
# SOURCE_DATE_EPOCH is the time of all files; left out it is that of the commit.
set -euo pipefail

[ $# = 2 ] || { echo 'usage: installer/package/linux.sh VERSION DIRECTORY' >&2; exit 64; }
version=${1#v}
directory=$(realpath -m "$2")
cd "$(dirname "$0")/../.."
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
arch=$(go env GOHOSTARCH)

mkdir -p "$directory"
GOOS=linux GOARCH=$arch installer/package/build.sh "$directory/kagzi" "v$version"
go run ./installer/package files "$version" installer/package/files "$directory/kagzi"
go run ./installer/package bill "$version" "$directory/kagzi" "$directory/kagzi_${version}_linux_$arch.cdx.json"
installer/package/nfpm.sh "$version" linux "$arch" "$directory/kagzi" "$directory"
(cd "$directory" && sha256sum -- kagzi kagzi_* >SHA256SUMS)
