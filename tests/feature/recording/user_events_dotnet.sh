#!/bin/sh
# record --dotnet-user-events: a .NET 10 process writes its events into the kernel's user_events (a stand-in, see user_events.sh). They have the names, fields, values and activities that a trace by EventPipe has at the
# same time, and call chains; nothing is lost; the session ends with the recording, also if that is killed. An older runtime, and a file that is not the kernel's: refused, and the process lives on.
. "$(dirname "$(realpath "$0")")/../own_tracefs"
. "$here/programs/managed/prelude"
make_tracefs
have_user_events
program forwarded
start app $preload dotnet "$program" "$scratch/ready"
until_true [ -e ready ] || fail "the program does not start"

# unregistered: the process has ended the registrations that it made.
unregistered() {
	[ "$(grep -c "^+ .* $app\$" registered)" = "$(grep -c "^- .* $app\$" registered)" ]
}

# events_of FILE NAME: fields, attributes and activity of its events of this name, one JSON object a line.
events_of() {
	"$spoor" events --json "$1" >events.json 2>err || fail "events of $1: $(cat err)"
	jq -cS --arg name "$2" 'select(.event == $name and .provider == "Forwarded-Types") | {id, version, level, keywords, opcode, fields, activity, related_activity}' events.json
}

# Both ways at the same time.
start RECORDER $preload "$spoor" record -p $app --dotnet-user-events Forwarded-Types:7:5 -o u.nettrace 2>record.err
start TRACER "$spoor" trace -q -p $app --providers Forwarded-Types:7:5 --rundown false -o t.nettrace 2>trace.err
both() {
	for each in u t; do
		"$spoor" events --json $each.nettrace 2>/dev/null >$each.json
		[ "$(jq -s 'map(select(.event == "Warned")) | length' $each.json)" -ge 40 ] || return 1
	done
}
until_true both || fail "no events: $(cat record.err trace.err)"
kill -INT $TRACER && wait $TRACER || fail "trace: $(cat trace.err)"
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
has record.err ' events of user_events in .*, nothing lost'
until_true unregistered || fail "the session does not end: $(cat registered)"
for name in Numbers Others Warned Described; do
	events_of t.nettrace $name >$name.traced
	events_of u.nettrace $name >$name.recorded
done
# Each event has a number. One of the recordings began and ended before the other: what both have is the same.
cat >compare.py <<'END'
import json, sys
def read(name):
    events = [json.loads(line) for line in open(name)]
    return {e["fields"].get("number", e["fields"].get("Number", i)): e for i, e in enumerate(events)}
for name in ("Numbers", "Warned", "Described"):
    traced, recorded = read(name + ".traced"), read(name + ".recorded")
    low, high = max(min(traced), min(recorded)), min(max(traced), max(recorded))
    both = [n for n in range(low, high + 1) if n in traced or n in recorded]
    assert len(both) > 20, "%s: %d events" % (name, len(both))
    for n in both:
        assert traced.get(n) == recorded.get(n), "%s %d: %s and %s" % (name, n, traced.get(n), recorded.get(n))
others = [{json.dumps(e, sort_keys=True) for e in read("Others" + kind).values()} for kind in (".traced", ".recorded")]
assert others[0] == others[1] and len(others[0]) == 1, others
END
python3 compare.py 2>err || fail "events differ: $(tail -n 1 err | cut -c1-600)"
"$spoor" events u.nettrace --json --event Warned >warned
json_lines warned 'map(select(.event == "Warned")) | all(.[]; .pid == ($a | tonumber) and .activity == "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")' $app
json_lines warned 'map(select(.event == "Warned")) | all(.[]; .stack | map(.function) | index("writev") and any(.[]; test("Main")))'
written=$(grep -c "$app" written)
"$spoor" events u.nettrace --json >u.json 2>events.err || fail "events: $(cat events.err)"
recorded=$(value_lines u.json 'map(select(.provider == "Forwarded-Types")) | length')
[ "$written" = "$recorded" ] || fail "$written events were written and $recorded recorded"
"$spoor" report -v u.nettrace >report.out || fail "report"
has report.out 'Forwarded-Types/Numbers$'
echo "$recorded events, as many as were written, as by EventPipe"

# The runtime's own events, without a description; this keyword starts a collection.
start RECORDER $preload "$spoor" record -p $app --dotnet-user-events Microsoft-Windows-DotNETRuntime:0x800001:4,No-Such-Source -o r.nettrace 2>record.err
collected() {
	"$spoor" events r.nettrace --json --event GC/Start 2>/dev/null | jq -es 'any(.[]; .stack and (.stack | map(.function) | index("writev")) and .fields.Reason == 1)' >/dev/null
}
until_true collected || fail "no collection: $(cat record.err registered)"
# The recorder is killed: the guard ends the session.
kill -9 $RECORDER
wait $RECORDER 2>/dev/null
until_true unregistered || fail "the session of a killed recorder stays: $(cat registered)"
"$spoor" events r.nettrace --json >/dev/null 2>err || fail "the recording of a killed recorder: $(cat err)"
echo "the guard ends the session of a killed recorder"

# A file in place of the kernel's, without the stand-in: the runtime refuses it, and lives on.
start PLAIN dotnet "$program" "$scratch/ready2"
until_true [ -e ready2 ] || fail "the program does not start"
$preload "$spoor" record -p $PLAIN --dotnet-user-events Forwarded-Types --duration 500ms -o x.nettrace 2>record.err || fail "record: $(cat record.err)"
"$spoor" report -v x.nettrace >report.out || fail "report"
has report.out 'its runtime writes no events into user_events: '
kill -0 $PLAIN || fail "the program has ended"

# An older runtime does not know the request.
older=$(dirname "$(dirname "$program")")/managed-9.0/Managed
if [ -x "$older" ]; then
	start OLDER "$older" idle 600000 >older.out
	until_true grep -q ready older.out || fail "the older program does not start"
	$preload "$spoor" record -p $OLDER --dotnet-user-events Forwarded-Types --duration 1s -o o.nettrace 2>record.err || fail "record: $(cat record.err)"
	"$spoor" report -v o.nettrace >report.out || fail "report"
	has report.out 'its runtime writes no events into user_events: that takes .NET 10'
	kill -0 $OLDER || fail "the older program has ended"
else
	echo "left out: a program of .NET 9 at $older"
fi

# Mistakes.
code_of "$spoor" record --dotnet-user-events 'A:zz' -o w.nettrace -- true
expect_code 2 "keywords that are no number"
code_of "$spoor" record --dotnet-user-events A --no-dotnet -o w.nettrace -- true
expect_code 2 "--no-dotnet"
exit 0
