#!/bin/sh
# run.sh BUILD-FOLDER: records the demo's program with spoor, and holds what spoor report says of the file against what TraceEvent finds in it (Program.cs). Then the same for a
# file whose recorder was killed. Skipped without a .NET SDK, and where its one package cannot be fetched.
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

# With rights the whole machine, without only the program.
target='-a'
[ "$(id -u)" = 0 ] || target="-p $app"

# shellcheck disable=SC2086 # two words
"$build/spoor" record $target -F 499 --duration 3s -o "$out/whole.nettrace" || {
	code=$?
	[ $code = 3 ] && skip "this user may not record here (spoor doctor says why)"
	exit $code
}
# shellcheck disable=SC2086
"$build/spoor" record $target -F 499 --duration 60s -o "$out/killed.nettrace" >/dev/null 2>&1 </dev/null &
recorder=$!
sessions_open "$out/killed.nettrace" 1 || wait $recorder
sleep 3
kill -9 $recorder
wait $recorder 2>/dev/null || :
recorder=''

# As where no perf event may be opened: the same events, made of clocks and the runtime's samples.
names='whole killed'
if "$build/tests/hostile" no-perf EPERM "$build/spoor" record -p "$app" --duration 3s -o "$out/clocks.nettrace"; then
	names="$names clocks"
fi

for name in $names; do
	"$build/spoor" report "$out/$name.nettrace" --raw-names --json >"$out/$name.json"
	echo "$name.nettrace:"
	dotnet "$oracle" "$out/$name.nettrace" "$out/$name.json" "$app" Shop.Pricing.Burn
done
