#!/usr/bin/env bash
# Measures what Kagzi needs from a machine and compares it with limits: the size of the binary, the time to start, the memory, and the
# writes and queries of an idle server. Linux only; with strace the counts are more exact.
#
#   installer/appliance.sh [BINARY]     without BINARY, kagzi is built, and its size is measured for other systems too
#
# KAGZI_APPLIANCE_IDLE is how many seconds an idle server is watched (30), KAGZI_APPLIANCE_RUNS the number of runs (10000). With
# KAGZI_APPLIANCE_POSTGRES, the URL of an empty database, and psql, an idle server's queries are counted too.
# Exit code: 0 all within the limits, 1 not.
set -euo pipefail

cd "$(dirname "$0")/.."
idle=${KAGZI_APPLIANCE_IDLE:-30}
runs=${KAGZI_APPLIANCE_RUNS:-10000}
work=$(mktemp -d "${TMPDIR:-/tmp}/kagzi-appliance.XXXXXX")
server= # process id
address=
broken=0
export KAGZI_CONFIG=off

clean_up() {
	status=$?
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
	exit "$status"
}
trap clean_up EXIT

# report prints a figure, and remembers when it is above its limit.
report() {
	local name=$1 figure=$2 unit=$3 limit=$4 verdict=
	if awk "BEGIN { exit !($figure > $limit) }"; then verdict='  TOO MUCH' broken=1; fi
	printf '%-52s %8s %-4s at most %s%s\n' "$name" "$figure" "$unit" "$limit" "$verdict"
}

milliseconds() { echo $((${EPOCHREALTIME/./} / 1000)); }

# start starts a server with arguments and waits until it says where it serves; took is how long that was, in ms.
start() {
	local began line
	rm -f "$work/said"
	mkfifo "$work/said"
	began=$(milliseconds)
	"$kagzi" server --data-dir "$work/data" --listen 127.0.0.1:0 --http off --log-level warn "$@" >"$work/said" 2>"$work/log" &
	server=$!
	exec 3<"$work/said"
	address=
	while read -r -t 60 line <&3; do
		case $line in *'--address '*) address=${line##*--address } && break ;; esac
	done
	took=$(($(milliseconds) - began))
	[ -n "$address" ] || { cat "$work/log"; echo 'the server did not start'; exit 1; }
}

stop() {
	kill "$server"
	wait "$server"
	exec 3<&-
	server=
}

# resident is the memory of the server, in MB.
resident() { awk '/^VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$server/status"; }

# ticks is the processor's time that the server has taken, in hundredths of a second.
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$server/stat"; }

written() { awk '/^write_bytes/ { print $2 }' "/proc/$server/io"; }

# calls counts, while a command runs, the server's calls that change a file or make it durable; what is written to no file, as the runtime
# wakes its threads, is left out.
calls() {
	local tracer
	strace -f -y -qq -p "$server" -o "$work/calls" \
		-e trace=write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync_file_range,ftruncate,fallocate,rename,renameat,renameat2,unlink,unlinkat &
	tracer=$!
	while grep -qsx 'TracerPid:	0' /proc/"$server"/task/*/status && kill -0 "$tracer" 2>/dev/null; do sleep 0.1; done # until it looks at each thread
	"$@"
	kill "$tracer" 2>/dev/null || true
	wait "$tracer" || true
	grep -cE "$work/data|^[0-9]+ +(rename|unlink)" "$work/calls" || true
}

# watch looks at an idle server: what it writes, and what it computes.
watch() {
	local bytes cpu
	bytes=$(written) cpu=$(ticks)
	if [ "$traced" = 1 ]; then
		report "calls that write, idle for $idle s" "$(calls sleep "$idle")" '' 0
	else
		sleep "$idle"
		echo 'SKIPPED: strace is missing or may not look at the server, so calls that write are not counted'
	fi
	report "bytes written, idle for $idle s" $(($(written) - bytes)) B 0
	report "processor, idle for $idle s" "$(awk "BEGIN { printf \"%.2f\", ($(ticks) - $cpu) / $idle }")" '%' 1
}

if [ $# -gt 0 ]; then
	kagzi=$(realpath "$1")
else
	for target in linux/arm64 darwin/arm64 windows/amd64 "$(go env GOHOSTOS)/$(go env GOHOSTARCH)"; do
		kagzi=$work/kagzi
		GOOS=${target%/*} GOARCH=${target#*/} installer/package/build.sh "$kagzi"
		report "binary for $target" "$(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$kagzi") / 1000000 }")" MB 40
	done
fi
[ $# -eq 0 ] || report 'binary' "$(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$kagzi") / 1000000 }")" MB 40

start
echo "$took ms to the first start, which makes the database"
"$kagzi" bench --workload W2 --runs 20 --address "$address" >/dev/null 2>"$work/bench" || { cat "$work/bench"; exit 1; }
stop
times=
for _ in 1 2 3 4 5; do
	start
	times="$times $took"
	[ "$times" = "${times#* * * * *}" ] || break # the fifth stays up
	stop
done
report 'start to serving on a small database, median of 5' "$(tr ' ' '\n' <<<"$times" | sed '/^$/d' | sort -n | sed -n 3p)" ms 300

traced=0
code=0
timeout 1 strace -qq -p "$server" -o /dev/null 2>/dev/null || code=$?
[ "$code" != 124 ] || traced=1 # it looked on until its time was up
sleep 10
report 'memory, idle' "$(resident)" MB 60
watch
if [ "$traced" = 1 ]; then # or the zero above says nothing
	control() { "$kagzi" workflow start control --address "$address" >/dev/null || echo 'the control was not started' >&2; }
	[ "$(calls control)" -gt 0 ] || { echo 'strace sees no write where there is one'; exit 1; }
fi
"$kagzi" bench --workload W1 --runs "$runs" --address "$address" >/dev/null 2>"$work/bench" || { cat "$work/bench"; exit 1; }
report "memory, right after $runs runs" "$(resident)" MB 200
sleep 10
report "memory, 10 s after $runs runs" "$(resident)" MB 60
watch
stop

if [ -n "${KAGZI_APPLIANCE_POSTGRES:-}" ]; then
	start --db "$KAGZI_APPLIANCE_POSTGRES"
	sleep 10
	report 'memory, idle, on Postgres' "$(resident)" MB 60
	transactions() {
		psql -XAtq "$KAGZI_APPLIANCE_POSTGRES" -c 'select xact_commit + xact_rollback from pg_stat_database where datname = current_database()'
	}
	# The statistics come late, and hold what autovacuum does: of two looks the one with less tells what the server does, which is to ask
	# every 10 s whether its listening connection lives.
	least=
	for _ in 1 2; do
		before=$(transactions)
		sleep "$idle"
		now=$(($(transactions) - before))
		[ -n "$least" ] && [ "$least" -lt "$now" ] || least=$now
	done
	report "transactions on Postgres, idle for $idle s" "$least" '' "$((idle / 5 + 4))" # psql itself among them
	stop
fi
exit "$broken"
