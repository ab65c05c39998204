#!/bin/sh
# run.sh BUILD-FOLDER: records the demo's program with spoor, and holds what spoor report says of the file against what TraceEvent finds in it (Program.cs). Then the same for a
# file whose recorder was killed. Skipped without a .NET SDK, and where its one package cannot be fetched.
set -eu
build=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
top=$here/../..
out=$build/oracle
app='' load='' recorder=''
mkdir -p "$out"

stop() {
	[ -z "$recorder" ] || kill -9 "$recorder" 2>/dev/null || :
	[ -z "$load" ] || kill "$load" 2>/dev/null || :
	[ -z "$app" ] || kill "$app" 2>/dev/null || :
	wait
}
trap stop EXIT
trap 'exit 130' INT TERM HUP

skip() {
	echo "skipped: $*"
	exit 77
}

command -v dotnet >/dev/null || skip "no .NET SDK here: dotnet is not in PATH"
"$build/spoor" help record >/dev/null 2>&1 || skip "this spoor cannot record"
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1

# What goes wrong with the package (no network) is a reason to skip, what goes wrong with our program is a failure.
code=0
timeout 90 dotnet restore "$here" --artifacts-path "$out/dotnet" -v quiet -nodeReuse:false >"$out/restore.log" 2>&1 || code=$?
if [ $code != 0 ]; then
	if [ $code = 124 ] || grep -qE 'NU1301|NU1101|NU1102|NU1801' "$out/restore.log"; then
		skip "NuGet could not be reached for Microsoft.Diagnostics.Tracing.TraceEvent"
	fi
	cat "$out/restore.log"
	exit 1
fi
dotnet build "$here" -c Release --no-restore --artifacts-path "$out/dotnet" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$out/build.log" 2>&1 || {
	cat "$out/build.log"
	exit 1
}
oracle=$out/dotnet/bin/oracle/release/oracle.dll

code=0
why=$("$top/scripts/build-webapi" "$out/webapi") || code=$?
[ $code != 77 ] || skip "$why"
[ $code = 0 ] || exit 1
rm -f "$out/port" "$out"/*.nettrace
dotnet "$out/webapi/bin/webapi/release/Shop.dll" "$out/port" &
app=$!
for _ in $(seq 100); do
	[ -e "$out/port" ] && break
	sleep 0.1
done
"$build/examples/load" "$(cat "$out/port")" 2 /cpu /alloc /throw >/dev/null
"$build/examples/load" "$(cat "$out/port")" 12 /cpu /wait /alloc /throw >/dev/null &
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
sleep 4
kill -9 $recorder
wait $recorder 2>/dev/null || :
recorder=''

for name in whole killed; do
	"$build/spoor" report "$out/$name.nettrace" --raw-names --json >"$out/$name.json"
	echo "$name.nettrace:"
	dotnet "$oracle" "$out/$name.nettrace" "$out/$name.json" "$app" Shop.Pricing.Burn
done
