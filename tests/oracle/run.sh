#!/bin/sh
# run.sh BUILD-FOLDER: spoor report shows the same as TraceEvent (Program.cs) for a recording of the demo's program, for one whose recorder was killed, and for one without perf
# events. Skipped without a .NET SDK, and where its one package cannot be fetched.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"
app='' load='' recorder=''

stop() {
	[ -z "$recorder" ] || kill -9 "$recorder" 2>/dev/null || :
	[ -z "$load" ] || kill "$load" 2>/dev/null || :
	[ -z "$app" ] || kill "$app" 2>/dev/null || :
	wait
}
trap stop EXIT

"$build/spoor" help record >/dev/null 2>&1 || skip "this spoor cannot record"

program webapi
rm -f "$out/port" "$out"/*.nettrace
dotnet "$program" "$out/port" &
app=$!
port_of "$out/port"
"$build/examples/load" "$port" 2 /cpu /alloc /throw >/dev/null
"$build/examples/load" "$port" 60 /cpu /wait /alloc /throw >/dev/null &
load=$!

# With rights the whole machine is recorded, without rights only the program.
target='-a'
[ "$(id -u)" = 0 ] || target="-p $app"

# shellcheck disable=SC2086 # two words
"$build/spoor" record $target -F 499 --duration 5s -o "$out/whole.nettrace" || {
	code=$?
	[ $code = 3 ] && skip "this user may not record here (spoor doctor says why)"
	exit $code
}
# enough_samples: the recording, which is still written, has some hundred.
enough_samples() {
	"$build/spoor" report --json "$out/killed.nettrace" >"$out/killed.json" 2>/dev/null && [ "$(value "$out/killed.json" .samples)" -ge 500 ]
}
# shellcheck disable=SC2086
"$build/spoor" record $target -F 499 --duration 600s -o "$out/killed.nettrace" >/dev/null 2>&1 </dev/null &
recorder=$!
sessions_open "$out/killed.nettrace" 1 || wait $recorder
until_true enough_samples || fail "the recording has no samples"
kill -9 $recorder
wait $recorder 2>/dev/null || :
recorder=''

# Without perf events: the same kinds of events, made of CPU clocks and the runtime's samples.
names='whole killed'
if "$build/tests/hostile" no-perf EPERM "$build/spoor" record -p "$app" --duration 8s -o "$out/clocks.nettrace"; then
	names="$names clocks"
fi

# Symbol files of this machine would name functions that the killed recorder had not named yet.
without_symbols() {
	if [ -d /usr/lib/debug ] && unshare --mount true 2>/dev/null; then
		SPOOR_SYMBOL_CACHE=$out/none unshare --mount sh -c 'mount -t tmpfs none /usr/lib/debug && exec "$@"' sh "$@"
	else
		SPOOR_SYMBOL_CACHE=$out/none "$@"
	fi
}

for name in $names; do
	without_symbols "$build/spoor" report "$out/$name.nettrace" --raw-names --json >"$out/$name.json"
	echo "$name.nettrace:"
	dotnet "$oracle" "$out/$name.nettrace" "$out/$name.json" "$app" Shop.Pricing.Burn
done
