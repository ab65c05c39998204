#!/bin/sh
# trace.sh BUILD-FOLDER: spoor trace of the demo's program under load, beside a second session of the same run that keeps the runtime's bytes as they are; TraceEvent must find
# the same in both (Same.cs). Then the raw bytes through the relay, which must change nothing. Skipped as run.sh is.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"
app='' load='' second=''

stop() {
	for each in $second $load $app; do
		kill "$each" 2>/dev/null || :
	done
	wait
}
trap stop EXIT

program webapi
rm -f "$out/trace.port" "$out"/trace_*.nettrace
dotnet "$program" "$out/trace.port" >/dev/null &
app=$!
port_of "$out/trace.port"
"$build/examples/load" "$port" 2 /cpu /alloc /throw >/dev/null
"$build/examples/load" "$port" 12 /cpu /wait /alloc /throw >/dev/null &
load=$!

# Native events with and without stacks, activities, counters (objects within objects), logging.
providers='System.Threading.Tasks.TplEventSource:0x80:4,System.Runtime:0xffffffff:4:EventCounterIntervalSec=1,Microsoft-Extensions-Logging:4:5,Microsoft-AspNetCore-Server-Kestrel'
set -- -p "$app" --profile dotnet-common,dotnet-sampled-thread-time --providers "$providers"
"$build/spoor" trace -q "$@" --raw -o "$out/trace_raw.nettrace" --duration 7s </dev/null &
second=$!
sleep 1
"$build/spoor" trace "$@" -o "$out/trace_relayed.nettrace" --duration 4s
wait $second
second=''

echo "two sessions of one run:"
dotnet "$oracle" same "$out/trace_relayed.nettrace" "$out/trace_raw.nettrace" "$app"
echo "the same bytes:"
"$build/tests/relayed" "$out/trace_raw.nettrace" "$app" "$out/trace_through.nettrace"
dotnet "$oracle" equal "$out/trace_through.nettrace" "$out/trace_raw.nettrace" "$app"
