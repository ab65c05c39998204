#!/bin/sh
# trace.sh BUILD-FOLDER: TraceEvent finds the same events in a file of spoor trace and in a second session with the runtime's own bytes (Same.cs), of the demo's program under load. The
# relay does not change the events of the raw bytes. Skipped as run.sh is.
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
"$build/examples/load" "$port" 600 /cpu /wait /alloc /throw >/dev/null &
load=$!

# Native events with and without stacks, activities, counters (nested objects), logging.
providers='System.Threading.Tasks.TplEventSource:0x80:4,System.Runtime:0xffffffff:4:EventCounterIntervalSec=1,Microsoft-Extensions-Logging:4:5,Microsoft-AspNetCore-Server-Kestrel'
set -- -p "$app" --profile dotnet-common,dotnet-sampled-thread-time --providers "$providers"
"$build/spoor" trace -q "$@" --raw -o "$out/trace_raw.nettrace" </dev/null &
second=$!
until_true test -s "$out/trace_raw.nettrace" || {
	echo "FAILED: the second session sends nothing"
	exit 1
}
sleep 1
"$build/spoor" trace "$@" -o "$out/trace_relayed.nettrace" --duration 4s
sleep 1 # the second session lasts longer than the first
kill -INT $second
wait $second
second=''

echo "two sessions of one run:"
dotnet "$oracle" same "$out/trace_relayed.nettrace" "$out/trace_raw.nettrace" "$app"
echo "the same bytes:"
"$build/tests/relayed" "$out/trace_raw.nettrace" "$app" "$out/trace_through.nettrace"
dotnet "$oracle" equal "$out/trace_through.nettrace" "$out/trace_raw.nettrace" "$app"
