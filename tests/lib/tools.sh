#!/bin/sh
# tools.sh BUILD-FOLDER: spoor finds a program with libspoor as it finds .NET processes: ps lists it, and counters shows its meters without a name of one.
set -eu
build=$(realpath "$1")
work=$(mktemp -d)
trap 'kill $server 2>/dev/null || :; rm -rf "$work"' EXIT
server=
skip() {
	echo "skipped: $*"
	exit 77
}
fail() {
	echo "FAILED: $*"
	exit 1
}
. "$(dirname "$0")/../json"
PATH=$build:$PATH
cp "$build/examples/server" "$work/shop18server"
TMPDIR=$work "$work/shop18server" 600 >"$work/out" 2>&1 &
server=$!
for _ in $(seq 600); do
	if grep -q ready "$work/out"; then
		break
	fi
	sleep 0.1
done
grep -q ready "$work/out" || fail "the server does not start: $(cat "$work/out")"

spoor ps --json >"$work/all.json"
json "$work/all.json" '[.processes[] | select(.pid == ($a | tonumber))] | length == 1' "$server"
spoor ps -n 'shop18*' --json >"$work/ps.json"
json "$work/ps.json" '.processes | length == 1'
json "$work/ps.json" '.processes[0] | .pid == ($a | tonumber) and .kind == "libspoor" and .dotnet == false and .reachable' "$server"
spoor ps -p $server >"$work/ps.txt"
grep -q ' libspoor ' "$work/ps.txt" || fail "no kind in: $(cat "$work/ps.txt")"

for chosen in "-p $server" '-n shop18*'; do
	# shellcheck disable=SC2086 # options
	timeout 120 spoor counters $chosen --count 2 --format csv >"$work/counters" 2>"$work/said" || fail "counters $chosen: $(cat "$work/said")"
	grep -q 'Example.Counters' "$work/counters" || fail "counters $chosen does not show its meter: $(cat "$work/counters" "$work/said")"
done
