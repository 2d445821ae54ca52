#!/bin/sh
# A worker over HTTP, with curl 7.82 and jq: worker.sh FILE, which sets queue and type and has workflow().
# KAGZI_HTTP is the server's address, KAGZI_HEADERS a file with the line "Authorization: Bearer SECRET".
set -u
api=${KAGZI_HTTP:-http://127.0.0.1:50052}/v1 held=$(mktemp) heart=
. "$1"

post() { # PATH, with the request on stdin
	curl -fsS -m 90 ${KAGZI_HEADERS:+-H "@$KAGZI_HEADERS"} --json @- "$api/$1"
}

# step NAME COMMAND… prints what the command prints, JSON or text. It returns 1 if this worker is done
# with the run, because a retry is due later or the lease is lost, and 2 if the step failed for good.
step() {
	name=$1 && shift
	begun=$(jq -n --arg s "$name" --arg t "$token" '{stepName: $s, kind: "STEP_KIND_FUNCTION", leaseToken: $t}' |
		post "workflows/$run/steps:begin") || return 1
	if [ "$(echo "$begun" | jq .shouldExecute)" != true ]; then # it has run before
		echo "$begun" | jq -r 'if .error then error(.error.message) else .cachedOutput.json end' || return 2
	elif out=$("$@"); then
		echo "$begun" | jq --arg o "$out" --arg t "$token" \
			'{stepId, leaseToken: $t, output: {json: ($o | fromjson? // $o)}}' |
			post "workflows/$run/steps:complete" >/dev/null && echo "$out" || return 1
	else
		echo "$begun" | jq --arg m "$name: exit code $?" --arg t "$token" '{stepId, leaseToken: $t, error: {message: $m}}' |
			post "workflows/$run/steps:fail" | jq -e '.scheduledRetry | not' >/dev/null && return 2 || return 1
	fi
}

register() { # and send heartbeats while this shell lives
	echo '[]' >"$held"
	me=$(jq -n --arg q "$queue" --arg t "$type" '{taskQueue: $q, workflowTypes: [$t], maxConcurrent: 1}' |
		post workers) || return 1
	id=$(echo "$me" | jq -r .workerId) every=$(echo "$me" | jq '(.heartbeatIntervalMs | tonumber) / 1000')
	[ -z "$heart" ] || kill "$heart" 2>/dev/null
	while sleep "$every" && kill -0 $$ 2>/dev/null; do
		jq '{held: ., heldIsWhole: true}' "$held" | post "workers/$id:heartbeat" >/dev/null
	done & heart=$!
}

trap 'kill $heart; echo "{}" | post "workers/$id:deregister" >/dev/null; rm -f "$held"; exit' INT TERM
until register; do sleep 1; done
while :; do
	task=$(jq -n --arg q "$queue" --arg t "$type" '{taskQueue: $q, workflowTypes: [$t], wait: "20s"}' |
		post "workers/$id:poll") || { sleep 1; register; continue; }
	run=$(echo "$task" | jq -er .runId) || continue # nothing to do
	token=$(echo "$task" | jq -r .task.leaseToken)
	echo "$task" | jq '[{runId, leaseToken: .task.leaseToken}]' >"$held"
	out=$(workflow "$(echo "$task" | jq -r '.input.json')")
	case $? in
	0) end=complete result='{output: {json: ($o | fromjson? // $o)}}' ;;
	2) end=fail result='{error: {message: $o}}' ;;
	*) end= ;;
	esac
	[ -z "$end" ] || jq -n --arg o "$out" --arg t "$token" "$result + {leaseToken: \$t}" |
		post "workflows/$run:$end" >/dev/null
	echo '[]' >"$held"
done
