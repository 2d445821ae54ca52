#!/bin/sh
# Builds the binary as packages hold it, for $GOOS and $GOARCH: installer/package/build.sh FILE [VERSION]
# .goreleaser.yml says the same in its own words.
set -eu
[ $# = 1 ] || [ $# = 2 ] || { echo 'usage: installer/package/build.sh FILE [VERSION]' >&2; exit 64; }
# grpcnotrace leaves out golang.org/x/net/trace, which nothing here turns on: 360 KB less.
# nopgxregisterdefaulttypes leaves out guesses of the types of Postgres, as every statement is prepared: 1.4 MB less.
# nethttpomithttp2 leaves out HTTP/2 of net/http, which the HTTP port does not speak and gRPC has itself: 500 KB less.
# Nothing is inlined (-l) in what a person or an agent looks at, nor in what starts, installs, measures or shows a demo,
# which is not where time goes: 1.1 MB less.
CGO_ENABLED=0 GOFLAGS='' GOAMD64=v1 GOARM64=v8.0 go build -trimpath \
	-tags grpcnotrace,nopgxregisterdefaulttypes,nethttpomithttp2 \
	-gcflags='github.com/kagzi/kagzi/tui/...=-l' \
	-gcflags='github.com/kagzi/kagzi/engine/conformance/...=-l' \
	-gcflags='github.com/kagzi/kagzi/engine/agq=-l' \
	-gcflags='github.com/kagzi/kagzi/engine/daemon/...=-l' \
	-gcflags='github.com/spf13/...=-l' \
	-gcflags='github.com/pelletier/...=-l' \
	-gcflags='github.com/prometheus/...=-l' \
	-gcflags='go.opentelemetry.io/otel/sdk/...=-l' \
	-gcflags='go.opentelemetry.io/otel/exporters/...=-l' \
	-gcflags='go.opentelemetry.io/proto/...=-l' \
	-gcflags='github.com/modelcontextprotocol/...=-l' \
	-gcflags='github.com/rivo/tview=-l' \
	-gcflags='net/http=-l' \
	-gcflags='github.com/kagzi/kagzi/installer=-l' \
	-gcflags='github.com/kagzi/kagzi/backends/memory=-l' \
	-gcflags='github.com/segmentio/encoding/json=-l' \
	-gcflags='github.com/gdamore/...=-l' \
	-gcflags='github.com/grpc-ecosystem/...=-l' \
	-gcflags='github.com/kagzi/kagzi/backends/move=-l' \
	-gcflags='github.com/google/...=-l' \
	-gcflags='golang.org/x/text/...=-l' \
	-gcflags='github.com/kagzi/kagzi/tui/bench=' \
	-ldflags "-s -w${2:+ -X main.version=$2}" -o "$1" .
