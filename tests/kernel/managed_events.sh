#!/bin/sh
# Events of .NET runtimes beside the samples: as many as the programs count themselves, each with its process, in order of time; left out when nobody wants them; and a flood of
# them costs neither memory nor samples, and is counted to the last one.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

# count FILE.json NAME: events of this name in report --json.
count() {
	grep -oE "\"name\":\"$2\"[^}]*\"count\":[0-9]+" "$1" | grep -oE '[0-9]+$' | awk '{ n += $1 } END { print n + 0 }'
}

told() {
	sed -n "s/.*$2 \([0-9]*\).*/\1/p" "ready.$1"
}

report_of() {
	"$spoor" report -v "$1.nettrace" >"$1.report" 2>err || fail "report of $1"
	"$spoor" report --json "$1.nettrace" >"$1.json" 2>err || fail "report --json of $1"
}

# recorded NAME option...: in the background, until its sessions are open in both programs.
recorded() {
	file=$1 && shift
	start recorder "$spoor" record -F 199 -o "$file.nettrace" "$@" 2>"$file.err"
	until_true test -s "$file.nettrace" || fail "no recording appears: $(cat "$file.err")"
	sleep 1
}

ended() {
	kill -INT $recorder
	wait $recorder || fail "the recording $1 failed: $(cat "$1.err")"
	report_of "$1"
}

one='' two=''
begin one events 500
begin two events 300
begin idle idle 600000

# Two programs in one file.
recorded both -p "$one,$two"
touch go
until_true grep -q thrown ready.one || fail "the first program does not end its work"
until_true grep -q thrown ready.two || fail "the second program does not end its work"
sleep 0.5
ended both
has both.err 'samples and [0-9,]+ \.NET events in [0-9.]+ s, nothing lost'
has both.report 'nothing lost'
has both.report '^opened in 2 \.NET processes: live Microsoft-Windows-DotNETRuntime:0x120003403d:[45], 16 MB, no stacks; rundown 0x18'
has both.report '^ +800  Microsoft-Windows-DotNETRuntime/Exception/Start'
thrown=$(($(told one thrown) + $(told two thrown)))
collected=$(($(told one collected) + $(told two collected)))
[ "$thrown" = 800 ] || fail "the programs threw $thrown times"
[ "$(count both.json '[^"]*Exception/Start')" = "$thrown" ] || fail "$(count both.json '[^"]*Exception/Start') exceptions, not $thrown"
[ "$(count both.json '[^"]*GC/Start')" = "$collected" ] || fail "$(count both.json '[^"]*GC/Start') collections, not $collected"
[ "$(count both.json '[^"]*GC/Stop')" = "$collected" ] || fail "$(count both.json '[^"]*GC/Stop') ends of collections, not $collected"
# What only level 5 brings, and the methods that are told of for their names.
has_no both.json '"name":"[^"]*(GC/AllocationTick|GC/PinObjectAtGCTime|Method/LoadVerbose|Method/JittingStarted|Method/ILToNativeMap)"'
touch end
wait $one $two || fail "a program did not end well"
rm -f go end

# None, and none without a session.
begin one events 100
recorded none -p $one --no-events
touch go
until_true grep -q thrown ready.one || fail "the program does not end its work"
ended none
has_no none.err '\.NET events'
has none.report '^opened in .*: live Microsoft-Windows-DotNETRuntime:0x38:[45], 16 MB, no stacks; rundown 0x18'
has_no none.report 'events  name'
[ "$(count none.json '[^"]*(Exception|GC)/Start')" = 0 ] || fail "events in spite of --no-events"
touch end
wait $one
rm -f go end
code_of "$spoor" record -p $idle --no-dotnet --duration 500ms -o nothing.nettrace
expect_code 0 "--no-dotnet"
has_no err '\.NET events'
report_of nothing
has_no nothing.report '^opened in'

# More, also of the runtime itself; packed.
begin one events 100
recorded more -z -p $one --providers Microsoft-Windows-DotNETRuntime:0x8019:5,System.Runtime::4:EventCounterIntervalSec=1
mv more.nettrace more.zst
touch go
until_true grep -q thrown ready.one || fail "the program does not end its work"
sleep 1.5
kill -INT $recorder
wait $recorder || fail "the recording more failed: $(cat more.err)"
zstd -q -d more.zst -o more.nettrace 2>/dev/null || mv more.zst more.nettrace
report_of more
[ "$(count more.json '[^"]*Exception/Start')" = 100 ] || fail "$(count more.json '[^"]*Exception/Start') exceptions, not 100"
[ "$(count more.json '[^"]*Method/LoadVerbose')" -gt 10 ] || fail "no methods, which were asked for"
has more.report 'System\.Runtime/EventCounters'
touch end
wait $one
rm -f go end

# A flood: 100,000 exceptions a second or whatever this machine can. Neither memory nor samples are lost, and what is not in the file is counted.
begin one throws 3000
recorded flood -p $one
touch go
most=0
for _ in $(seq 40); do
	grep -q thrown ready.one && break
	rss=$(awk '/^VmHWM/ { print $2 }' "/proc/$recorder/status")
	[ "${rss:-0}" -le "$most" ] || most=$rss
	sleep 0.1
done
until_true grep -q thrown ready.one || fail "the program does not end its work"
sleep 0.5
ended flood
has_no flood.report 'samples lost|sample lost'
is_sanitized || [ "$most" -lt 65536 ] || fail "the recorder took $most kB"
thrown=$(told one thrown)
[ "$thrown" -gt 1000 ] || fail "no flood: $thrown exceptions"
events=$(grep -oE '"count":[0-9]+' flood.json | wc -l)
[ "$events" -gt 4 ] || fail "too few kinds of events"
all=$(sed -n 's/.*"events":\[\(.*\)\].*"processes".*/\1/p' flood.json | grep -oE '"count":[0-9]+' | cut -d: -f2 | awk '{ n += $1 } END { print n + 0 }')
lost=$(sed -n 's/.*"losses":\[\([^]]*\)\].*/\1/p' flood.json | grep -oE '"unit":"events","count":[0-9]+,"exact":true,"moved":false' | grep -oE '"count":[0-9]+' | cut -d: -f2 |
	awk '{ n += $1 } END { print n + 0 }')
echo "flood: $thrown exceptions, $all events recorded, $lost counted as lost, $most kB"
# The throw of each, not its catch; beside them the few of collections and tiering.
[ $((all + lost)) -ge "$thrown" ] || fail "$all events and $lost lost ones are less than one of each of $thrown exceptions"
[ $((all + lost)) -le $((thrown + 20000)) ] || fail "$all events and $lost lost ones are more than there were"
touch end
wait $one || fail "the flooding program did not end well"
rm -f go end

# A size that is asked for holds under a flood too.
begin one throws 60000
recorded small -p $one --max-size 8M
touch go
until_true sh -c "! kill -0 $recorder 2>/dev/null" || fail "the size does not end it"
wait $recorder || fail "the recording with a size failed: $(cat small.err)"
# What was had already and does not fit any more is left out, and counted.
[ "$(stat -c %s small.nettrace)" -lt 8100000 ] || fail "the recording has $(stat -c %s small.nettrace) bytes"
report_of small
has small.json '"source":"limit","unit":"events","count":[0-9]+,"exact":true'
kill -9 $one

# Misused.
code_of "$spoor" record -p $idle --no-events --providers Some
expect_code 2 "--no-events with --providers"
code_of "$spoor" record -p $idle --providers My:notanumber
expect_code 2 "keywords that are none"
