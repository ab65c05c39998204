#!/bin/sh
# spoor trace writes the events of real programs in every form: several programs in one file, as the runtime sends it (--raw), as text (--print), until an event,
# and in a pid namespace.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# burns FILE: an event has a stack with Hot.Burn.
burns() {
	json_lines "$1" 'any(.[]; any(.stack[]?; .function // "" | test("Burn")))'
}

begin one paced 600000
begin two paced 600000

# Two programs in one file. The providers are printed, and nothing is lost.
trace_of -p "$one,$two" --duration 4s -o both.nettrace
expect_code 0 "two programs"
has err 'providers +Microsoft-Windows-DotNETRuntime +0x000000100003801d +informational +--profile \(the default\)'
has err "^next +$spoor events both\.nettrace --summary\$"
paste_next err
has step.out 'Microsoft-DotNETCore-SampleProfiler'
has err '^tracing +Managed \([0-9]+\), Managed \([0-9]+\)'
has err 'both\.nettrace .* events and [0-9,]+ of the rundown, of 2 processes in [0-9.]+ m?s, nothing lost'
has err '^events +Microsoft-Windows-DotNETRuntime +[1-9][0-9,]*$'
has err '^ +Microsoft-DotNETCore-SampleProfiler +[1-9][0-9,]*$'
# The number of events is the sum of the lines of the providers; the rundown is counted separately.
tr -d , <err | awk '/both\.nettrace/ { for (i = 1; i <= NF; i++) if ($i == "events") total = $(i - 1) }
	/^events +Micro/ { sum += $3 } /^ +Microsoft.*[0-9]$/ && NF == 2 { sum += $2 }
	END { exit !(total && total - sum <= 16) }' || fail "the events of the end line: $(cat err)"
trace_of -p "$one" --providers Microsoft-Windows-DotNETRuntim,System.Net.Http,Nope --duration 2s -o none.nettrace
expect_code 0 "providers that do not exist"
has err "^events +Microsoft-Windows-DotNETRuntim +0  no event source of this name sent any; did you mean 'Microsoft-Windows-DotNETRuntime'"
has err '^ +System\.Net\.Http +0$'
has err '^ +Nope +0  no event source of this name sent any$'
traced both.nettrace 2
has report 'nothing lost'
"$spoor" events both.nettrace --json --provider '*SampleProfiler' >stacks.json
burns stacks.json
json_lines stacks.json 'any(.[]; .level == 4 and .keywords == "0x0" and .bytes == 4)'

# --raw: a file for each process, with the bytes that the runtime sent.
trace_of -p "$one,$two" --raw --duration 3s -o raw.nettrace
expect_code 0 "two programs raw"
for pid in $one $two; do
	[ "$(head -c 8 raw_$pid.nettrace)" = Nettrace ] && [ "$(tail -c 1 raw_$pid.nettrace | od -An -tu1 | tr -d ' ')" = 1 ] ||
		fail "raw_$pid.nettrace is no whole trace"
	"$spoor" events raw_$pid.nettrace --json --no-stacks >events.json && value events.json .time >times && [ -s times ] && sort -c times ||
		fail "events of raw_$pid.nettrace are out of order"
	"$spoor" events raw_$pid.nettrace --json --provider '*SampleProfiler' >stacks.json
	burns stacks.json
done
trace_of -p $one --raw --duration 3s -o - --rundown false
[ "$(head -c 8 out)" = Nettrace ] || fail "no trace on standard output"

# --print: a line for each event with process, name and fields, and only the events with the ids of --event-ids. The trace ends with the event.
until_event="--duration 200s --stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name"
# shellcheck disable=SC2086 # its words
trace_of -p $one --providers Microsoft-Windows-DotNETRuntime:1:4 --rundown false --print $until_event GC/HeapStats
expect_code 0 "printed"
has out "^[0-9:.]{15}  $one/[0-9]+  Microsoft-Windows-DotNETRuntime/GC/Start  Count=[0-9]+ Depth=[0-9] Reason="
has out 'GC/HeapStats  GenerationSize0='
[ ! -e Managed_*.nettrace ] || fail "there is a file without -o"
# shellcheck disable=SC2086
trace_of -p $one --providers Microsoft-Windows-DotNETRuntime:1:4 --event-ids Microsoft-Windows-DotNETRuntime:1 --rundown false --print $until_event GC/Start
expect_code 0 "event ids"
has out '/GC/Start '
has_no out 'HeapStats|GC/Stop'

# A reader that closes the pipe ends the trace, without a failure.
"$spoor" trace -q -p $one --rundown false --print 2>err | head -n 3 >out
[ "$(wc -l <out)" = 3 ] && [ ! -s err ] || fail "a reader that closes the pipe: $(cat err)"

# An event ends the trace before its duration.
before=$(date +%s)
trace_of -p $one --clrevents gc --stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name GC/Start \
	--stopping-event-payload-filter ClrInstanceID:0 --duration 200s -o stopped.nettrace
expect_code 0 "a stopping event"
[ $(($(date +%s) - before)) -lt 150 ] || fail "the stopping event did not stop it"
has_no err 'did not occur'
trace_of -p $one --clrevents gc --stopping-event-provider-name Nothing-Says-This --duration 1s -o unstopped.nettrace
expect_code 0 "a stopping event that does not come"
has err '^the stopping event did not occur$'
# In a pid namespace: the ids are those of this namespace.
if is_root && unshare --pid --mount --fork true 2>/dev/null; then
	: >ready.inside
	start outer unshare --pid --mount --fork --kill-child --mount-proc sh -c "mount -t tmpfs none /tmp; unset TMPDIR; dotnet '$app' paced 600003" >ready.inside
	until_true grep -q ready ready.inside || fail "the program in a namespace does not start"
	"$spoor" ps -n Managed --json >inside.json || fail "ps"
	pid=$(value inside.json '.processes[] | select(.command_line | test("paced 600003")) | .pid')
	# shellcheck disable=SC2086
	trace_of -p "$pid" --providers Microsoft-Windows-DotNETRuntime:1:4 --rundown false --print $until_event GC/Start
	expect_code 0 "in a namespace: $(cat err)"
	tid=$(grep -m 1 -oE "  $pid/[0-9]+  " out | tr -dc '0-9/' | cut -d/ -f2)
	nsenter --target "$pid" --pid --mount --root "$spoor" trace --duration 2s -o /tmp/within.nettrace 2>err || fail "within: $(cat err)"
	has err 'tracing +Managed \([0-9]+\)$'
	[ -n "$tid" ] && [ -d "/proc/$pid/task/$tid" ] || fail "there is no thread '$tid' of process $pid in this namespace"
else
	echo "no namespaces can be made here: inner ids were not tested"
fi
exit 0
