#!/bin/sh
# record --user-events: the events of libspoor's logger and of what spoor gen makes, all 515 of .NET among them, have the names, fields, values, activities, threads and stacks that were written. The kernel's
# tracepoints are uprobes of a stand-in (tests/lib/user_events_uprobes.h), in a tracefs that only this script sees. And without the kernel's interface, without tracefs, mistakes.
. "$(dirname "$(realpath "$0")")/../own_tracefs"

# Mistakes, which need no rights.
for wrong in '' ':x' 'x:' 'a:b:c' 'a,'; do
	code_of "$spoor" record --user-events "$wrong" -o w.nettrace -- true
	expect_code 2 "--user-events '$wrong'"
	has err '^(spoor record: )?--user-events .* names no events'
done
code_of "$spoor" record --user-events demo -t 1 -o w.nettrace
expect_code 2 "threads"
has err 'not of single threads'
if [ -d /sys/kernel/tracing/events ] && [ ! -e /sys/kernel/tracing/user_events_data ]; then
	code_of "$spoor" record --user-events demo -o w.nettrace -- true
	expect_code 3 "a kernel without user_events"
	has err 'CONFIG_USER_EVENTS'
fi
[ ! -e w.nettrace ] || fail "a recording that was not begun"

command -v python3 >/dev/null && command -v gcc >/dev/null || skip "no gcc or no python3 here"
writer=$build/tests/lib/logger_writer
top=$(realpath "$here/../..")
make_tracefs
mkdir empty
mount --bind empty /sys/kernel/debug 2>/dev/null
code_of "$spoor" record --user-events demo -o w.nettrace -- true
expect_code 3 "no tracefs"
has err 'tracefs is not mounted'
mkdir -p /sys/kernel/tracing/events/user_events
code_of "$spoor" record --user-events demo -o w.nettrace -- true
expect_code 3 "no file user_events_data"
has err 'this kernel has none'
have_user_events

# No program has registered anything.
"$spoor" record --user-events 'no_such*' -o m.nettrace -- true 2>err || fail "record: $(cat err)"
has err '^no program had registered events of user_events'
"$spoor" report -v m.nettrace >report.out || fail "report"
has report.out 'no program had registered a tracepoint of user_events that --user-events names'

# lines FILE: the events of a recording as event_header.py prints them.
lines() {
	"$spoor" events "$1" --json >events.json 2>err || fail "spoor events $1"
	python3 "$here/user_event_lines.py" events.json || fail "$1 has other lines"
}

# decode: the events that the stand-in wrote, as lines. Those that are larger than an uprobe's data are left out.
decode() {
	awk 'length($4) <= 2 * 2560' written >written.short
	python3 "$top/tests/lib/event_header.py" written.short >decoded 2>err || fail "an event is malformed: $(cat err)"
	jq -cS . decoded
}

# same WANTED FOUND COUNT: the files have the same lines, COUNT or more.
same() {
	sort "$1" >wanted.sorted
	sort "$2" >found.sorted
	cmp -s wanted.sorted found.sorted || fail "other events than were written: $(diff wanted.sorted found.sorted | cut -c1-300 | head -n 6)"
	[ "$(wc -l <"$2")" -ge "$3" ] || fail "$(wc -l <"$2") events, not $3"
}

# A command that registers its tracepoints while it is recorded: each event, with its activities, and one that has no place in an uprobe's data, which is counted.
: >written
code_of "$spoor" record --user-events '*' -o a.nettrace -- $preload USER_EVENTS_WAIT=1 "$writer" user-events activities
expect_code 0 "$(cat err)"
has err ' events of user_events in .*, 1 event of user_events lost'
decode >wanted.lines
lines a.nettrace | jq -cS . >found.lines
same wanted.lines found.lines 8
"$spoor" report -v a.nettrace >report.out || fail "report"
has report.out '1 event of user_events could not be decoded'
"$spoor" events a.nettrace --json --event refund >refunds 2>err
json_lines refunds 'map(select(.event == "refund")) | length == 4 and all(.[]; .stack | map(.function) | index("writev") and index("activities") and index("main"))'
"$spoor" events a.nettrace --json --event Session >session.json
json_lines session.json '.[0].fields.Options | fromjson | .user_events == ["*"]'
echo "$(wc -l <found.lines) events of a command, with activities and stacks"

# A process that runs already: all types and values; what the patterns do not name is not recorded.
mkfifo input
exec 9<>input
: >written
start WRITER sh -c 'exec env LD_PRELOAD="$0" "$1" user-events <input >rounds' "$stand_in" "$writer"
until_true grep -q '^ready' rounds || fail "logger_writer did not start"
start RECORDER "$spoor" record -p $WRITER --user-events 'Types,Test_Shop:ord*,Run_Time_L2K4:Made' -o p.nettrace 2>record.err
written_p() {
	"$spoor" events p.nettrace --json >p.json 2>/dev/null
	for each in Plain Arrays Nested Nothing order Made; do
		[ "$(value_lines p.json 'map(select(.event == $a)) | length' "$each")" -ge 20 ] || return 1
	done
}
until_true written_p || fail "no events in the recording: $(cat record.err)"
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
has record.err ' events of user_events in .*, nothing lost'
until_true grep -q '^enable Test-Shop off .* any 0$' rounds || fail "the tracepoints stay enabled: $(tail -n 2 rounds)"
lines p.nettrace >found.lines
jq -cS 'del(.pid, .tid)' found.lines | sort -u >found.kinds
# bytes and addresses are hexadecimal there
decode | sed "s/\"0x0102ff\"/[1,2,255]/; s/\"0x7f0012345678\"/$(printf %d 0x7f0012345678)/" | jq -cS 'select(.event != "refund") | del(.pid, .tid)' | sort -u >wanted.kinds
same wanted.kinds found.kinds 6
[ "$(jq -r '"\(.pid) \(.tid)"' found.lines | sort -u)" = "$WRITER $WRITER" ] || fail "events of another thread"
# None is missing while all tracepoints are open, as each round has one of each.
python3 -c 'import json
times = {}
for line in open("events.json"):
    event = json.loads(line)
    if "id" in event and event.get("pid") == '$WRITER' and event["provider"] in ("Types", "Test_Shop", "Run_Time"):
        times.setdefault(event["event"], []).append(event["time"])
begin, end = max(min(t) for t in times.values()), min(max(t) for t in times.values())
counts = {name: sum(begin <= t <= end for t in all) for name, all in times.items()}
assert max(counts.values()) - min(counts.values()) <= 1 and min(counts.values()) > 10, counts' 2>err || fail "events are missing: $(tail -n 1 err)"
"$spoor" report p.nettrace >report.out || fail "report"
has report.out 'Test_Shop/order$'
echo "$(wc -l <found.lines) events of a process"

# With copied stacks, and the whole machine.
start RECORDER "$spoor" record -a --no-dotnet --call-graph dwarf --user-events 'T?pes:Plain' -o w.nettrace 2>record.err
written_w() {
	"$spoor" events w.nettrace --json --event Plain 2>/dev/null | awk 'END { exit NR < 5 }'
}
until_true written_w || fail "no events of the machine: $(cat record.err)"
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
"$spoor" events w.nettrace --json --event Plain >plains
json_lines plains 'all(.[]; .pid == ($a | tonumber) and (.stack | map(.function) | index("types_fire_all") and index("main")))' $WRITER
echo >&9
wait $WRITER

# What spoor gen makes, with each event one time.
fires() {
	"$spoor" gen -q "$2" -o "$1" --only user-events --only json 2>err || fail "$2 is refused"
	mkdir "$1.program"
	python3 "$top/tests/gen/fire.py" make "$1/events.json" user_events "$1.program/main.c" "$1.program/expected.json" || fail "no program for $1"
	gcc -std=c11 -O1 -fno-omit-frame-pointer -I"$top/include" -I"$1" "$1.program/main.c" "$1"/*.c -o "$1.program/fire" 2>err || fail "the program of $1 does not build"
	code_of "$spoor" record --user-events '*' -o "$1.nettrace" -- $preload USER_EVENTS_WAIT=1 "$1.program/fire"
	expect_code 0 "$1: $(cat err)"
	has out '^0 not enabled'
	has err ' events of user_events in .*, nothing lost'
	# Another version of an event has the id with 0x8000 more, as readers know one layout of an id, and an event without an id one from 0x4000 on.
	lines "$1.nettrace" | python3 -c 'import json, sys
for line in sys.stdin:
    event = json.loads(line)
    event["id"] = event["id"] % 0x8000 if event["id"] % 0x8000 < 0x4000 else 0
    print(json.dumps(event))' >"$1.decoded"
	python3 "$top/tests/gen/fire.py" compare event-header "$1.program/expected.json" "$1.decoded" >out || fail "events of $1 have other values: $(head -n 3 out | cut -c1-600)"
	echo "$1: $(tail -n 1 out)"
}
fires shop "$top/tests/data/manifest/shop.man"
fires ClrEtwAll "$top/tests/data/manifest/ClrEtwAll.man"
[ "$(wc -l <ClrEtwAll.decoded)" = 515 ] || fail "$(wc -l <ClrEtwAll.decoded) events of .NET, not 515"
exit 0
