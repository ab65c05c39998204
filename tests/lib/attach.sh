#!/bin/sh
# attach.sh BUILD-FOLDER PART: .NET's own tools and client attached to a C program (examples/server). PART is one command of attach/Attach.cs, or `trace` (dotnet-trace), or
# `counters-tool` (dotnet-counters). Skipped without a .NET SDK, and if the package or tool is not available from NuGet.
set -eu
build=$(realpath "$1")
part=$2
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../..")
server='' collector=''
TMPDIR=$(mktemp -d)
export TMPDIR SPOOR_TEST_WORD='a=b; c'

stop() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	[ -z "$collector" ] || kill -9 "$collector" 2>/dev/null || :
	wait
	rm -rf "$TMPDIR"
}
trap stop EXIT
trap 'exit 130' INT TERM HUP

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "FAILED: $*"
	exit 1
}

export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1
. "$top/tests/programs"
. "$top/tests/json"

start() {
	"$build/examples/server" >"$TMPDIR/server.out" 2>"$TMPDIR/server.err" &
	server=$!
	for _ in $(seq 2400); do
		grep -q ready "$TMPDIR/server.out" && return
		sleep 0.05
	done
	cat "$TMPDIR/server.err"
	fail "the server did not start"
}

alive() {
	kill -0 "$server" 2>/dev/null || fail "the server died: $(cat "$TMPDIR/server.err")"
	[ ! -s "$TMPDIR/server.err" ] || fail "the server said: $(cat "$TMPDIR/server.err")"
}

case $part in
trace)
	program dotnet-trace
	start
	"$program" ps >"$TMPDIR/ps"
	grep -qE "^ *$server +server " "$TMPDIR/ps" || fail "dotnet-trace ps does not list $server: $(cat "$TMPDIR/ps")"
	# As a user begins: the default profiles would also enable events of a runtime.
	"$program" collect -p "$server" --providers 'Example:0x1:5,Microsoft-DotNETCore-SampleProfiler:0:4' --duration 00:00:03 \
		-o "$TMPDIR/a.nettrace" >"$TMPDIR/collect" 2>&1 || fail "dotnet-trace collect: $(cat "$TMPDIR/collect")"
	grep -q 'Trace completed' "$TMPDIR/collect" || fail "dotnet-trace collect: $(cat "$TMPDIR/collect")"
	"$program" report "$TMPDIR/a.nettrace" topN -n 20 >"$TMPDIR/top" 2>&1 || fail "dotnet-trace report: $(cat "$TMPDIR/top")"
	grep -q 'server!.*burn_step' "$TMPDIR/top" || fail "no burn_step in: $(cat "$TMPDIR/top")"
	"$program" convert "$TMPDIR/a.nettrace" --format Speedscope >"$TMPDIR/convert" 2>&1 || fail "dotnet-trace convert: $(cat "$TMPDIR/convert")"
	for name in burn_step burn_outer; do
		json "$TMPDIR/a.speedscope.json" 'any(.shared.frames[]; .name | test("server!.*" + $a))' "$name"
	done
	[ "$(uname -m)" != x86_64 ] || json "$TMPDIR/a.speedscope.json" 'any(.shared.frames[]; .name | test("example-rules!.*Rule::match"))'
	# The default profiles.
	"$program" collect -p "$server" --duration 00:00:01 -o "$TMPDIR/b.nettrace" >"$TMPDIR/collect" 2>&1 || fail "dotnet-trace collect: $(cat "$TMPDIR/collect")"
	"$program" report "$TMPDIR/b.nettrace" topN >"$TMPDIR/top" 2>&1 || fail "dotnet-trace report: $(cat "$TMPDIR/top")"
	grep -q 'burn_step' "$TMPDIR/top" || fail "no burn_step in: $(cat "$TMPDIR/top")"
	# A port of the tool: the program connects to it, and waits until it is resumed.
	alive
	"$program" collect --diagnostic-port "$TMPDIR/port" --providers Example:0x1:5 --duration 00:00:02 -o "$TMPDIR/c.nettrace" >"$TMPDIR/collect" 2>&1 &
	collector=$!
	for _ in $(seq 1200); do
		[ -S "$TMPDIR/port" ] && break
		sleep 0.1
	done
	DOTNET_DiagnosticPorts=$TMPDIR/port timeout 200 "$build/examples/server" 4 >"$TMPDIR/second.out" 2>&1 || fail "the suspended server: $(cat "$TMPDIR/second.out")"
	wait $collector || fail "dotnet-trace collect --diagnostic-port: $(cat "$TMPDIR/collect")"
	[ "$(stat -c %s "$TMPDIR/c.nettrace")" -gt 20000 ] || fail "hardly anything came through the port"
	;;
counters-tool)
	program dotnet-counters
	start
	timeout 60 "$program" collect -p "$server" --counters Example.Counters --duration 00:00:04 --format csv -o "$TMPDIR/c.csv" >"$TMPDIR/collect" 2>&1 ||
		fail "dotnet-counters collect: $(cat "$TMPDIR/collect")"
	for name in requests open temperature latency uptime half; do
		grep -q "$name" "$TMPDIR/c.csv" || fail "no $name in: $(head -n 20 "$TMPDIR/c.csv")"
	done
	;;
events | stacks)
	program attach
	start
	timeout 300 dotnet "$program" "$part" "$server" "$TMPDIR/$part.nettrace"
	;;
sessions)
	program attach
	start
	timeout 600 dotnet "$program" sessions "$server" 100
	;;
hosted)
	program attach
	dll=$program
	timeout 200 dotnet "$dll" hosted "$build/libspoor.so"
	# The other order: libspoor first. The runtime gets the name when it is loaded, however early that is.
	root=$(dirname "$(readlink -f "$(command -v dotnet)")")
	host=$(ls "$root"/host/fxr/*/libhostfxr.so 2>/dev/null | sort -V | tail -n 1)
	[ -n "$host" ] || skip "no libhostfxr.so beside dotnet"
	for _ in 1 2 3 4 5; do
		DOTNET_ROOT=$root timeout 60 "$build/tests/lib/host_later" "$host" "$dll" hosted -
	done
	exit 0
	;;
*)
	program attach
	start
	timeout 300 dotnet "$program" "$part" "$server"
	;;
esac
alive
