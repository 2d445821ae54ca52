#!/usr/bin/env bash
# Tests the service and the packages on a booted system: boots a Debian tree with systemd as process 1, and runs `kagzi service` and a
# .deb in it, from installation to purge. Needs root, debootstrap and systemd-nspawn (package systemd-container). The host itself need
# not run systemd.
#
#   installer/real/run.sh [BINARY [OLD.deb NEW.deb]]     without arguments, all are built; with BINARY alone, no package is tested
#
# KAGZI_REAL_TREE names a tree made by debootstrap before, which is copied; left out one is made of KAGZI_REAL_SUITE (bookworm)
# from KAGZI_REAL_MIRROR (deb.debian.org).
# Exit code: 0 passed, 1 failed, 77 this machine cannot run it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)

cannot() { echo "SKIPPED: $1"; exit 77; }
[ "$(uname)" = Linux ] || cannot 'this is no Linux'
[ "$(id -u)" = 0 ] || cannot 'only root can boot a tree'
for tool in systemd-nspawn nsenter debootstrap; do
	command -v "$tool" >/dev/null || cannot "$tool is missing"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/kagzi-real.XXXXXX")
tree=$work/tree
machine= # process id of systemd-nspawn
init=    # process id of the tree's process 1
worker=  # process id of the worker in the tree

clean_up() {
	status=$?
	trap - TERM INT
	if [ "$status" != 0 ] && [ "$status" != 77 ] && [ -n "$init" ]; then
		echo '-- the service, as it is now'
		inside journalctl --no-pager --lines=40 --unit=kagzi.service || true
		cat "$work/worker.log" 2>/dev/null || true
	fi
	end_worker
	if [ -n "$init" ]; then kill -s RTMIN+4 "$init" 2>/dev/null || true; fi # power off
	if [ -n "$machine" ]; then
		for _ in $(seq 100); do
			kill -0 "$machine" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "$machine" 2>/dev/null || true
		wait "$machine" 2>/dev/null || true
	fi
	rm -rf --one-file-system "$work"
	case $status in
	0 | 77 | 143) exit "$status" ;;
	*) exit 1 ;; # also 124, of a command in the tree that did not end
	esac
}
trap clean_up EXIT
trap 'exit 143' TERM INT

step() { printf '\n== %s\n' "$1"; }
fail() { echo "FAILED: $1"; exit 1; }

# inside runs a command in the tree, as if typed there. None takes long: one that does has hung, which is a failure.
inside() { within 90 "$@"; }

# within does the same with a limit in seconds; 0 is no limit.
within() {
	local limit=$1
	shift
	${become:-} timeout --kill-after=5 "$limit" nsenter --target "$init" --mount --uts --ipc --net --pid --cgroup --root --wd -- \
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8 "$@"
}

# start_worker runs a worker in the tree until end_worker. `become=exec` makes its process id that of timeout, which passes signals on: a shell in
# between would not, and a process outside that waits for one in the tree hangs when systemd ends it.
start_worker() {
	become=exec within 0 kagzi demo worker --name "$1" --address 127.0.0.1:50051 --queue real --ledger /root/ledger \
		</dev/null >"$work/worker.log" 2>&1 &
	worker=$!
}

end_worker() {
	[ -n "$worker" ] || return 0
	kill "$worker" 2>/dev/null || true
	wait "$worker" 2>/dev/null || true
	worker=
}

# says is grep -q that reads to the end: a writer to a closed pipe is killed, which is a failure here.
says() { grep "$@" >/dev/null; }

# await tries a command until it succeeds.
await() {
	local what=$1 tries=$2
	shift 2
	for _ in $(seq "$tries"); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.2
	done
	fail "$what: not within $((tries / 5)) s"
}

# expect_code runs a command in the tree that must end with a code.
expect_code() {
	local want=$1 got=0
	shift
	inside "$@" || got=$?
	[ "$got" = "$want" ] || fail "$* ended with $got, want $want"
}

# usable tries, without Kagzi, what its unit needs of the kernel; nested containers often lack some of it.
usable() {
	printf 'probe\n' >"$tree/etc/probe" && chmod 600 "$tree/etc/probe"
	inside systemd-run --quiet --wait --pipe --property=DynamicUser=yes --property=StateDirectory=probe --property=LoadCredential=probe:/etc/probe \
		--property=ProtectSystem=strict --property=ProtectHome=yes --property=PrivateTmp=yes --property=PrivateDevices=yes --property=PrivateUsers=yes \
		--property=ProtectProc=invisible --property=ProtectKernelTunables=yes --property=ProtectControlGroups=yes --property=ProtectHostname=yes \
		--property=RestrictNamespaces=yes --property=MemoryDenyWriteExecute=yes --property=SystemCallFilter=@system-service \
		/bin/sh -c 'cat "$CREDENTIALS_DIRECTORY/probe"' | says -x probe
}

property() { inside systemctl show --property="$1" --value kagzi.service; }

step 'the binary'
old_package='' new_package=''
if [ $# -gt 0 ]; then
	install -m 0755 "$1" "$work/kagzi"
	old_package=${2:-} new_package=${3:-}
else
	arch=$(go env GOHOSTARCH)
	for version in 0.0.1 0.0.2; do
		bash "$repository/installer/package/linux.sh" "v$version" "$work/$version"
	done
	cp "$work/0.0.1/kagzi" "$work/kagzi"
	old_package=$work/0.0.1/kagzi_0.0.1_linux_$arch.deb new_package=$work/0.0.2/kagzi_0.0.2_linux_$arch.deb
fi
"$work/kagzi" service --help >/dev/null
# A second version to upgrade to: the same program with a few bytes behind its end, which nothing reads.
cp "$work/kagzi" "$work/kagzi.next"
printf 'the next version' >>"$work/kagzi.next"

step 'the tree'
if [ -n "${KAGZI_REAL_TREE:-}" ]; then
	cp -a "$KAGZI_REAL_TREE" "$tree"
else
	timeout --kill-after=5 240 debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd "${KAGZI_REAL_SUITE:-bookworm}" "$tree" "${KAGZI_REAL_MIRROR:-http://deb.debian.org/debian}" >"$work/debootstrap.log" 2>&1 ||
		{ tail -n 5 "$work/debootstrap.log"; cannot 'debootstrap cannot make a tree here'; }
fi
rm -f "$tree/etc/machine-id"
systemd-machine-id-setup --root="$tree" >/dev/null 2>&1
mkdir -p "$tree/root/new"
install -m 0755 "$work/kagzi" "$tree/root/kagzi"
install -m 0755 "$work/kagzi.next" "$tree/root/new/kagzi"

step 'boot'
systemd-nspawn --boot --register=no --keep-unit --private-network --console=pipe --machine=kagzi-real --directory="$tree" \
	</dev/null >"$work/boot.log" 2>&1 &
machine=$!
# systemd-nspawn has other children for a moment; process 1 is the one in process ids of its own.
find_init() {
	local child
	for child in $(cat "/proc/$machine/task/$machine/children" 2>/dev/null); do
		if [ "$(readlink "/proc/$child/ns/pid")" != "$(readlink /proc/self/ns/pid)" ] && [ "$(cat "/proc/$child/comm")" = systemd ]; then
			init=$child
			return
		fi
	done
	return 1
}
for _ in $(seq 100); do
	if find_init; then break; fi
	kill -0 "$machine" 2>/dev/null || { tail -n 5 "$work/boot.log"; cannot 'systemd-nspawn cannot boot a tree here'; }
	sleep 0.1
done
[ -n "$init" ] || cannot 'the tree has no process 1'
inside true || cannot 'nothing can be run in the tree'
booted() { inside systemctl is-system-running | says -E '^(running|degraded)$'; }
for _ in $(seq 300); do
	if booted 2>/dev/null; then break; fi
	sleep 0.2
done
booted || { tail -n 5 "$work/boot.log"; cannot 'systemd does not come up in the tree'; }
usable || cannot 'a unit in the tree does not get the namespaces, the credential or the filters that the service needs'
inside systemctl --version | head -n 1

step 'what would not work is refused, with what to do'
expect_code 4 /root/kagzi service status
expect_code 64 /root/kagzi service install                               # a program in /root, which the unit does not see
expect_code 64 /root/kagzi service install --copy-binary --config kagzi.toml # a relative path
expect_code 5 /root/kagzi service start
inside /root/kagzi service install --copy-binary --dry-run >/dev/null
inside test ! -e /etc/systemd/system/kagzi.service || fail 'a dry run wrote a unit'

step 'words of a command line arrive as they were'
nasty=('a b' '100% %n' '$HOME ${HOME} $$' 'say "hi" and '"'"'ho'"'"'' 'back\slash\' '{{x}}' '<&> ü 日本' '' ';' '#')
inside /root/kagzi service print --binary /usr/bin/printf -- "${nasty[@]}" |
	sed -e 's/^Type=notify/Type=oneshot/' -e 's/^Restart=.*//' -e "s|^ExecStart=/usr/bin/printf|& '<%%s>\\\\n'|" >"$tree/etc/systemd/system/words.service"
inside systemctl daemon-reload
inside systemctl start words.service
inside journalctl --sync
for word in "${nasty[@]}"; do
	inside journalctl --unit=words.service --output=cat | says -xF -- "<$word>" || {
		inside journalctl --unit=words.service --output=cat
		fail "the word $word did not arrive"
	}
done
rm -f "$tree/etc/systemd/system/words.service"
inside systemctl daemon-reload
rm -rf "$tree/var/lib/kagzi" "$tree/var/lib/private/kagzi" # StateDirectory= of that unit

step 'install, twice'
inside /root/kagzi service install --copy-binary
inside kagzi service status
inside kagzi service status --json | says '"state": "running"' || fail 'status --json does not say running'
first=$(property MainPID)
inside /root/kagzi service install --copy-binary | says unchanged || fail 'the second installation changed something'
[ "$(property MainPID)" = "$first" ] || fail 'the second installation restarted the service'
[ "$(property User)" != root ] || fail 'the service runs as root'
[ "$(stat -c %a "$tree/var/lib/private/kagzi")" = 700 ] || fail 'the data directory is not private'
inside kagzi workflow list >/dev/null
inside systemctl reload kagzi.service # which must not end it
inside kagzi workflow list >/dev/null
[ "$(property MainPID)" = "$first" ] || fail 'a reload ended the server'

step 'the database is what the settings say'
printf 'sqlite:/var/lib/kagzi/other.db\n' >"$tree/root/db.url"
chmod 600 "$tree/root/db.url"
inside kagzi service reconfigure --database-url-file /root/db.url
inside kagzi workflow list >/dev/null
inside test -e /var/lib/kagzi/other.db || fail 'the server did not get the URL of its database'
inside kagzi service reconfigure --database-url-file ''
sed -i 's/^\[server\]$/&\nlog-format = "json"/' "$tree/etc/kagzi/kagzi.toml"
inside kagzi service restart # which takes the settings up
inside kagzi service restart # which has a server with them say that it stops
inside journalctl --sync
inside journalctl --unit=kagzi.service --output=cat | says '"msg":"stopped"' || fail 'the server did not read its settings'

step 'a run goes on through SIGKILL of the server, a restart and an upgrade'
mkdir -p "$tree/root/ledger"
start_worker real-worker
run= # id of the run under way: two steps, with a sleep of six seconds between them
asleep() { inside kagzi workflow show "$run" -o json | says SLEEPING; }
start_run() {
	run=$(inside kagzi workflow start nap --queue real --input 6)
	await 'the run to sleep' 50 asleep
}
finished() {
	inside kagzi workflow wait "$run" --timeout 60s &&
		[ "$(wc -l <"$(find "$tree/root/ledger" -name "$run*")")" = 2 ] # each step was run once
}

start_run
before=$(property MainPID)
inside systemctl kill --signal=KILL --kill-whom=main kagzi.service
killed_at=$(date +%s%N)
# back asks for both properties at once, because the service may end between two calls.
back() {
	case " $(inside systemctl show --property=ActiveState,MainPID kagzi.service | tr '\n' ' ')" in
	*" MainPID=$before "* | *' MainPID=0 '*) return 1 ;;
	*' ActiveState=active '*) ;;
	*) return 1 ;;
	esac
}
await 'the service after SIGKILL' 100 back
echo "back after $((($(date +%s%N) - killed_at) / 1000000)) ms, restarts: $(property NRestarts)"
finished || fail 'the run did not finish after SIGKILL'

start_run
inside kagzi service restart
finished || fail 'the run did not finish after the restart'

start_run
before=$(property MainPID)
inside /root/new/kagzi service install --copy-binary
[ "$(property MainPID)" != "$before" ] || fail 'the upgrade did not restart the service'
inside cmp /root/new/kagzi /usr/local/bin/kagzi || fail 'the upgrade left the old program'
finished || fail 'the run did not finish after the upgrade'

step 'a restart of the journal and signals: the server goes on, or comes back'
before=$(property MainPID)
inside systemctl restart systemd-journald.service
inside systemctl reload kagzi.service # which logs
inside systemctl reload kagzi.service
inside kagzi workflow list >/dev/null
[ "$(property MainPID)" = "$before" ] || fail 'a restart of the journal ended the server'
inside systemctl kill --signal=PIPE --kill-whom=main kagzi.service # which the server ignores
inside kagzi workflow list >/dev/null
[ "$(property MainPID)" = "$before" ] || fail 'SIGPIPE ended the server'
inside systemctl kill --signal=TERM --kill-whom=main kagzi.service
await 'the service after SIGTERM' 100 back

step 'a server that hangs is ended by the watchdog, and comes back'
# watchdog_timeout overrides WatchdogSec= of the unit from the next start on, as systemctl edit does.
watchdog_timeout() {
	mkdir -p "$tree/etc/systemd/system/kagzi.service.d"
	printf '[Service]\nWatchdogSec=%s\n' "$1" >"$tree/etc/systemd/system/kagzi.service.d/by-hand.conf"
	inside systemctl daemon-reload
}
watchdog_timeout 10s
inside kagzi service restart
start_run
before=$(property MainPID)
inside systemctl kill --signal=STOP --kill-whom=main kagzi.service
watchdog_timeout 30s # or a server that is only slow is ended in what follows
await 'the service after it hung' 150 back
inside journalctl --sync
inside journalctl --unit=kagzi.service --output=cat | says 'Watchdog timeout' || fail 'it was not the watchdog that ended the server'
finished || fail 'the run did not finish after the server hung'

step 'TLS, with a key and settings that only root can read'
inside kagzi tls init --dir /root/tls >/dev/null
inside chmod 600 /etc/kagzi/kagzi.toml
inside kagzi service reconfigure --tls-cert /root/tls/server.crt --tls-key /root/tls/server.key --client-ca /root/tls/ca.crt
inside kagzi workflow list --address 127.0.0.1:50051 --tls-ca /root/tls/ca.crt | says "$run" || fail 'the server does not serve with TLS'
inside grep -q 'config credential:config ' /etc/systemd/system/kagzi.service || fail 'systemd does not hand the settings over'
invocation=$(property InvocationID)
inside chmod 644 /etc/kagzi/kagzi.toml
inside kagzi service reconfigure --tls-cert '' --tls-key '' --client-ca ''
inside journalctl --sync
inside journalctl --output=cat _SYSTEMD_INVOCATION_ID="$invocation" | says '"msg":"stopped"' || # in the form that the settings ask for
	fail 'the server did not read the settings that systemd handed over'
inside kagzi workflow list | says "$run" || fail 'the server does not serve without TLS again'
exposure=$(inside systemd-analyze security --no-pager kagzi.service | sed -n 's/.*exposure level for kagzi.service: \([0-9.]*\) .*/\1/p')
echo "exposure: $exposure"
awk "BEGIN { exit !($exposure <= 2.0) }" || fail "the service is exposed by $exposure, want at most 2.0"

step 'what does not start is taken back'
expect_code 1 kagzi service reconfigure -- --worker-lease 1ms
[ "$(property ActiveState)" = active ] || fail 'the old service does not run after a change that failed'
inside grep -q worker-lease /etc/systemd/system/kagzi.service && fail 'the change that failed is still there'

step 'stop, start, change'
inside kagzi service stop
expect_code 3 kagzi service status
inside kagzi service start
expect_code 6 /root/new/kagzi service install --copy-binary --listen 127.0.0.1:50099
inside kagzi service reconfigure --listen 127.0.0.1:50099
inside kagzi workflow list --address 127.0.0.1:50099 | says "$run" || fail 'the data are gone after a change'
inside kagzi service logs --lines 5

step 'uninstall: nothing is left'
end_worker
inside kagzi service uninstall --purge | says 'kept /etc/systemd/system/kagzi.service.d/by-hand.conf' || fail 'uninstall does not name what was made by hand'
rm -r "$tree/etc/systemd/system/kagzi.service.d"
inside systemctl daemon-reload
inside test ! -e /usr/local/bin/kagzi || fail 'the program is left'
# nothing_left fails when there is a file of Kagzi's outside of /root, or a unit.
nothing_left() {
	local left
	left=$(find "$tree" -xdev -name '*kagzi*' -not -path "$tree/root/*" -not -path "$tree/proc/*" -not -path "$tree/sys/*")
	[ -z "$left" ] || fail "left: $left"
	inside systemctl list-units --all --no-legend 'kagzi*' | grep . && fail 'systemd still knows the service'
	inside systemctl list-unit-files --no-legend 'kagzi*' | grep . && fail 'systemd still has the unit'
	return 0
}
nothing_left
expect_code 4 /root/kagzi service status
inside /root/kagzi service uninstall --purge # once more is nothing

if [ -n "$old_package" ]; then
	step 'a package: installed, it runs when asked to'
	install -m 0644 "$old_package" "$tree/root/old.deb"
	install -m 0644 "$new_package" "$tree/root/new.deb"
	deb() { inside env DEBIAN_FRONTEND=noninteractive dpkg "$@"; }
	deb --install /root/old.deb | says 'systemctl enable --now kagzi' || fail 'the package does not say what to do next'
	expect_code 3 kagzi service status
	[ "$(inside cat /usr/lib/systemd/system/kagzi.service)" = "$(inside kagzi service print)" ] || fail 'the unit of the package is not the one of kagzi'
	inside test -s /usr/share/man/man1/kagzi-workflow.1.gz &&
		inside test -s /usr/share/man/man7/kagzi-guide-backup.7.gz || fail 'the manual is missing'
	[ "$(stat -c %a "$tree/etc/kagzi/kagzi.env")" = 600 ] || fail 'others can read the environment of the service'
	inside systemctl enable --quiet --now kagzi
	inside kagzi service status
	expect_code 6 /root/kagzi service install --copy-binary # a second service in the package's place
	expect_code 6 kagzi service uninstall --purge
	inside kagzi service install | says unchanged || fail 'the service of the package is not taken as it is'

	step 'a package: an upgrade restarts the service, and the run goes on'
	start_worker package-worker
	printf '\n# by hand\n' >>"$tree/etc/kagzi/kagzi.toml"
	start_run
	before=$(property MainPID)
	deb --install /root/new.deb
	[ "$(property MainPID)" != "$before" ] || fail 'the upgrade did not restart the service'
	inside kagzi version | says 0.0.2 || fail 'the program is not the new one'
	inside grep -qx '# by hand' /etc/kagzi/kagzi.toml || fail 'the upgrade changed the settings'
	finished || fail 'the run did not finish after the upgrade'
	end_worker

	step 'a package: settings of kagzi service go before it, and back'
	inside kagzi service reconfigure --listen 127.0.0.1:50099
	inside kagzi workflow list --address 127.0.0.1:50099 | says "$run" || fail 'the data are gone after a change'
	deb --install /root/new.deb # once more
	[ "$(property ActiveState)" = active ] || fail 'the service does not run after the package was installed again'
	inside kagzi service uninstall | says 'in effect again' || fail 'the service of the package is not back'
	inside kagzi service start
	inside kagzi workflow list | says "$run" || fail 'the data are gone after going back'

	step 'a package: removed, its data stay; purged, nothing is left'
	deb --remove kagzi
	inside test -e /var/lib/private/kagzi/kagzi.db || fail 'removing the package took the data'
	[ "$(property ActiveState)" = inactive ] || fail 'the service runs on without its program'
	deb --install /root/new.deb
	inside systemctl enable --quiet --now kagzi
	inside kagzi workflow list | says "$run" || fail 'the data are gone after installing again'
	deb --purge kagzi
	rm -f "$tree"/var/log/dpkg.log
	nothing_left
fi

step 'a service of a user'
if inside test ! -e /usr/share/pam-configs/systemd; then
	fail 'the tree has no services of users; it needs the packages dbus-user-session and libpam-systemd'
fi
inside useradd --create-home you
install -m 0755 "$work/kagzi" "$tree/opt/kagzi"
id=$(inside id --user you)
# as_you runs a command as the user, in a session or, with an empty XDG_RUNTIME_DIR, without one.
as_you() { inside setpriv --reuid you --regid you --init-groups env HOME=/home/you "XDG_RUNTIME_DIR=${session-/run/user/$id}" "$@"; }
got=0
session='' as_you /opt/kagzi service install --user || got=$?
[ "$got" = 7 ] || fail "without a session of systemd: code $got, want 7"
got=0
as_you /opt/kagzi service install || got=$?
[ "$got" = 8 ] || fail "for the machine, as a user: code $got, want 8"
inside loginctl enable-linger you
users_manager() { as_you systemctl --user is-system-running | says -E '^(running|degraded)$'; }
await "the user's systemd" 100 users_manager
as_you /opt/kagzi service install --user
as_you /opt/kagzi service status --user
as_you /opt/kagzi workflow list >/dev/null
before=$(as_you systemctl --user show --property=MainPID --value kagzi.service)
as_you systemctl --user kill --signal=KILL --kill-whom=main kagzi.service
users_back() { as_you /opt/kagzi service status --user && [ "$(as_you systemctl --user show --property=MainPID --value kagzi.service)" != "$before" ] && as_you /opt/kagzi workflow list; }
await "the user's service after SIGKILL" 100 users_back
as_you /opt/kagzi service uninstall --user --purge
left=$(find "$tree/home" -name '*kagzi*')
[ -z "$left" ] || fail "left: $left"

step 'all as it must be'
