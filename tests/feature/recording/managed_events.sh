#!/bin/sh
# A recording has as many events of .NET runtimes as the programs count themselves, or none with --no-events. A flood of events costs no samples and little memory, and each lost event
# is counted.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# count FILE.json PATTERN: prints the number of events whose name ends with the pattern.
count() {
	value "$1" '[.events[] | select(.name | test($a + "$")) | .count] | add // 0' "$2"
}

# counted_by NAME WORD: prints the number that the program printed after the word.
counted_by() {
	sed -n "s/.*$2 \([0-9]*\).*/\1/p" "ready.$1"
}

report_of() {
	"$spoor" report -v "$1.nettrace" >"$1.report" 2>err || fail "report of $1"
	"$spoor" report --json "$1.nettrace" >"$1.json" 2>err || fail "report --json of $1"
}

# recorded NAME COUNT option...: starts a recording, and waits until so many sessions are open.
recorded() {
	file=$1 count=$2 && shift 2
	record_opened "$count" "$file.nettrace" record -F 199 "$@"
}

ended() {
	kill -INT $recorder
	wait $recorder || fail "the recording $1 failed: $(cat "$1.nettrace.err")"
	report_of "$1"
}

one='' two=''
begin one events 500
begin two events 300
begin idle idle 600000

# Two programs in one file.
recorded both 2 -p "$one,$two"
touch go
until_true grep -q thrown ready.one || fail "the first program does not end its work"
until_true grep -q thrown ready.two || fail "the second program does not end its work"
ended both
has both.nettrace.err 'samples and [0-9,]+ \.NET events in [0-9.]+ m?s, nothing lost'
has both.report 'nothing lost'
has both.report '^opened in 2 \.NET processes: live Microsoft-Windows-DotNETRuntime:0x100003403d:[45], 16 MB, no stacks; exceptions Microsoft-Windows-DotNETRuntime:0x200000000:2, 16 MB, no stacks; rundown 0x18'
has both.report '^ +800  Microsoft-Windows-DotNETRuntime/Exception/Start'
thrown=$(($(counted_by one thrown) + $(counted_by two thrown)))
collected=$(($(counted_by one collected) + $(counted_by two collected)))
[ "$thrown" = 800 ] || fail "the programs threw $thrown times"
[ "$(count both.json 'Exception/Start')" = "$thrown" ] || fail "$(count both.json 'Exception/Start') exceptions, not $thrown"
[ "$(count both.json 'GC/Start')" = "$collected" ] || fail "$(count both.json 'GC/Start') collections, not $collected"
[ "$(count both.json 'GC/Stop')" = "$collected" ] || fail "$(count both.json 'GC/Stop') ends of collections, not $collected"
# Events of level 5, and events of methods, which spoor uses only for names, are left out.
json both.json 'all(.events[]; .name | test("(GC/AllocationTick|GC/PinObjectAtGCTime|Method/LoadVerbose|Method/JittingStarted|Method/ILToNativeMap)$") | not)'
touch end
wait $one $two || fail "a program did not end well"
rm -f go end

# No events with --no-events, and none without a session.
begin one events 100
recorded none 1 -p $one --no-events
touch go
until_true grep -q thrown ready.one || fail "the program does not end its work"
ended none
has_no none.nettrace.err '\.NET events'
has none.report '^opened in .*: live Microsoft-Windows-DotNETRuntime:0x38:[45], 16 MB, no stacks; rundown 0x18'
has_no none.report 'events  name'
[ "$(count none.json '(Exception|GC)/Start')" = 0 ] || fail "there are events with --no-events"
touch end
wait $one
rm -f go end
code_of "$spoor" record -p $idle --no-dotnet --duration 500ms -o nothing.nettrace
expect_code 0 "--no-dotnet"
has_no err '\.NET events'
report_of nothing
has_no nothing.report '^opened in'

# More providers, packed.
begin one events 100
recorded more 1 -z -p $one --providers Microsoft-Windows-DotNETRuntime:0x8019:5,System.Runtime::4:EventCounterIntervalSec=1
touch go
until_true grep -q thrown ready.one || fail "the program does not end its work"
has_counters() {
	"$spoor" events more.nettrace | grep -q 'System\.Runtime/EventCounters'
}
until_true has_counters || fail "no EventCounters"
kill -INT $recorder
wait $recorder || fail "the recording more failed: $(cat more.nettrace.err)"
mv more.nettrace more.zst
zstd -q -d more.zst -o more.nettrace 2>/dev/null || mv more.zst more.nettrace
report_of more
[ "$(count more.json 'Exception/Start')" = 100 ] || fail "$(count more.json 'Exception/Start') exceptions, not 100"
[ "$(count more.json 'Method/LoadVerbose')" -gt 10 ] || fail "no methods, which were requested"
has more.report 'System\.Runtime/EventCounters'
touch end
wait $one
rm -f go end

# A flood of exceptions, as fast as this machine can. No samples are lost, the recorder's memory is bounded, and events that are not in the file are counted.
begin one throws 3000
recorded flood 1 -p $one
touch go
most=0
for _ in $(seq 600); do
	grep -q thrown ready.one && break
	rss=$(awk '/^VmHWM/ { print $2 }' "/proc/$recorder/status")
	[ "${rss:-0}" -le "$most" ] || most=$rss
	sleep 0.1
done
until_true grep -q thrown ready.one || fail "the program does not end its work"
ended flood
has_no flood.report 'samples lost|sample lost'
is_sanitized || [ "$most" -lt 65536 ] || fail "the recorder took $most kB"
thrown=$(counted_by one thrown)
[ "$thrown" -gt 1000 ] || fail "no flood: $thrown exceptions"
events=$(value flood.json '.events | length')
[ "$events" -gt 4 ] || fail "too few kinds of events"
all=$(value flood.json '[.events[].count] | add // 0')
lost=$(value flood.json '[.losses[] | select(.unit == "events" and .exact and (.moved | not)) | .count] | add // 0')
echo "flood: $thrown exceptions, $all events recorded, $lost counted as lost, $most kB"
# One event for each exception, and few others, of collections and tiering. Where the runtime's counter had no CPU time for a last value, the report says how many
# exceptions of the end are estimated.
code_of "$spoor" report --exceptions --json flood.nettrace
estimated=$(value out '.processes[0].estimated')
[ $((all + lost + estimated)) -ge "$thrown" ] || fail "$all events, of which $estimated are estimated, and $lost lost ones are less than one of each of $thrown exceptions"
[ $((all + lost)) -le $((thrown + 20000)) ] || fail "$all events and $lost lost ones are too many"
touch end
wait $one || fail "the flooding program did not end well"
rm -f go end

# --max-size holds in a flood of events, too. Events that were received and do not fit are dropped and counted. One try of several has such events,
# because a busy machine may send them slowly.
for _ in 1 2 3 4 5 6; do
	begin one throws 600000
	recorded small 1 -p $one --event-rate 0 --max-size 8M
	touch go
	until_true ended_process $recorder || fail "--max-size does not end the recording"
	wait $recorder || fail "the recording with a size failed: $(cat small.nettrace.err)"
	rm -f go
	kill -9 $one
	[ "$(stat -c %s small.nettrace)" -lt 8100000 ] || fail "the recording has $(stat -c %s small.nettrace) bytes"
	report_of small
	dropped=$(value small.json 'any(.losses[]; .source == "limit" and .unit == "events" and .exact)')
	[ "$dropped" != true ] || break
done
[ "$dropped" = true ] || fail "no dropped events are counted"

# Errors in the usage.
code_of "$spoor" record -p $idle --no-events --providers Some
expect_code 2 "--no-events with --providers"
code_of "$spoor" record -p $idle --providers My:notanumber
expect_code 2 "keywords that are none"
