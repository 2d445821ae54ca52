#!/bin/bash
# A worker of AGQ: worker.sh ID [PORT]. It runs plans whose tasks are a pipe, such as plan.json. It needs redis-cli and jq.
# Each redis-cli is a connection of its own; the user name says which worker it speaks for.
set -euo pipefail
me=$1 port=${2:-6380}
agq() { redis-cli --no-auth-warning -p "$port" --user "$me" --pass "${KAGZI_API_KEY:-none}" "$@"; }

agq SET "worker:$me:tools" printf,sort,uniq
while true; do
	job=$(agq BRPOPLPUSH queue:ready queue:processing 5)
	[ -n "$job" ] || continue
	input=$(agq GET "job:$job" | jq -c .input)
	plan=$(agq GET "plan:$(agq GET "job:$job" | jq -r .plan_id)")
	out='' status=completed
	for n in $(jq '.tasks | keys[]' <<<"$plan"); do
		# the task's arguments, one a NUL, with the fields of the input in their places
		mapfile -d '' -t words < <(jq -j --argjson n "$n" --argjson input "$input" '.tasks[$n] | (.command, .args[]?)
			| gsub("\\{\\{\\s*input\\.(?<field>[^{}\\s]+)\\s*\\}\\}"; "\($input[.field])") + "\u0000"' <<<"$plan")
		out=$(printf '%s' "$out" | "${words[@]}") || { status=failed; break; }
		out+=$'\n'
	done
	printf '%s' "$out" | agq -x SET "job:$job:stdout"
	agq SET "job:$job:status" "$status"
done
