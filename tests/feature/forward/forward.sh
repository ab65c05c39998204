#!/bin/sh
# spoor forward: the events of a .NET program reach libspoor's files and probes with the names, types and values that a trace of the same program has; as JSON too; and no session is left.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
top=$(realpath "$here/../..")
program forwarded
start app dotnet "$program" "$scratch/ready"
until_true [ -e ready ] || fail "the program does not start"
until_true no_session $app || fail "the program has sessions already"

# events_of FILE NAME: the fields of its events of this name, one JSON object a line, with keys in one order and without what forward adds.
events_of() {
	"$spoor" events --json "$1" >events.json 2>err || fail "events of $1: $(cat err)"
	jq -cS --arg name "$2" 'select(.event == $name) | .fields | with_entries(select(.key | startswith("origin_") | not))' events.json
}

# The same events by both ways.
start forwarder "$spoor" forward -p $app --to file -o f.nettrace --providers Forwarded-Types:7:5 2>forward.err
until_true grep -q '^forwarding' forward.err || fail "it does not forward: $(cat forward.err)"
start tracer "$spoor" trace -q -p $app --providers Forwarded-Types:7:5 --rundown false -o t.nettrace 2>trace.err
traced() {
	"$spoor" events --json t.nettrace 2>/dev/null | jq -es 'map(select(.event == "Warned")) | length > 20' >/dev/null
}
until_true traced || fail "no events in the trace: $(cat trace.err)"
kill -INT $tracer && wait $tracer || fail "trace: $(cat trace.err)"
kill -INT $forwarder && wait $forwarder || fail "forward: $(cat forward.err)"
has forward.err '^[0-9,]+ events of [5-6] kinds received in .*, [0-9,]+ forwarded \([0-9,]+ with the payload as JSON\), nothing lost\.$'
for name in Numbers Others Warned Described; do
	events_of t.nettrace $name >traced
	events_of f.nettrace $name >forwarded
	[ "$(wc -l <traced)" -gt 20 ] || fail "only $(wc -l <traced) events $name are in the trace"
	# The trace began later and ended earlier; an event has the same fields with the same values.
	sort traced | uniq >a && sort forwarded | uniq >b && comm -23 a b >missing
	[ ! -s missing ] || fail "events $name that were not forwarded, or with other values: $(head -n 3 missing) forwarded: $(head -n 3 b)"
done
events_of f.nettrace Others >others
json_lines others 'all(.[]; .text == "naïve \"quoted\"")'
# The runtime describes no fields of an event with an array: its bytes are forwarded.
events_of f.nettrace Arrays >arrays
json_lines arrays 'all(.[]; (.Payload | fromjson) == {"fields": {"payload": "0x0300010000000200000003000000"}})'
# Where it comes from.
"$spoor" events --json f.nettrace >events.json
json_lines events.json 'map(select(.event == "Warned")) | length > 20 and all(.[]; .fields.origin_pid == ($a | tonumber) and .fields.origin_tid > 0 and .fields.origin_activity_id == "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0" and .level == 3)' $app
# One kind of event, whether it has an activity or not.
json_lines events.json 'map(select(.provider == "Forwarded-Types")) | all(.[]; .fields | has("origin_activity_id")) and any(.[]; .fields.origin_activity_id == "00000000-0000-0000-0000-000000000000")'
json_lines events.json 'map(select(.event == "Warned") | .fields.number) | . == [range(.[0]; .[0] + length)]'
until_true no_session $app || fail "a session is left"

# One kind of event whatever the values are: dates that other ways to write a time cannot have, null.
start forwarder "$spoor" forward -p $app --to file -o v.nettrace --providers Forwarded-Types:10:5 2>forward.err
valued() {
	"$spoor" events --json v.nettrace 2>/dev/null | jq -es 'map(select(.event == "Bytes")) | length > 12' >/dev/null
}
until_true valued || fail "no events with odd values: $(cat forward.err)"
kill -INT $forwarder && wait $forwarder || fail "forward: $(cat forward.err)"
# The third one is the runtime's message that it does not send null to a session.
has forward.err ' events of 3 kinds received in .*, nothing lost'
"$spoor" events --json v.nettrace >events.json
json_lines events.json 'map(select(.provider == "Forwarded-Types")) | map([.event, .id]) | unique | length == 3'
json_lines events.json 'map(select(.event == "Dated").fields.when) | unique == ["1601-01-01T00:00:00Z", "2001-09-09T01:46:40Z", "2300-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z"]'

# One event for each level, with the payload as JSON.
code_of "$spoor" forward -q -p $app --to file -o j.nettrace --as-json --providers Forwarded-Types:7:5 --duration 2s
expect_code 0 "forward --as-json: $(cat err)"
"$spoor" events --json j.nettrace >events.json
jq -c 'select(.provider == "EventSource" and .fields.EventName == "Warned") | .event' events.json | sort -u >levels
[ "$(cat levels)" = '"Warning"' ] || fail "Warned came as $(cat levels)"
jq -c 'select(.provider == "EventSource" and .fields.EventName == "Others") | .fields.Payload | fromjson | .fields' events.json | jq -cS . | sort -u >json_others
events_of t.nettrace Others | sort -u >traced
cmp -s json_others traced || fail "the payload as JSON: $(head -n 2 json_others) and in the trace: $(head -n 2 traced)"

# Events of the runtime, by the names of its tracepoints.
code_of "$spoor" forward -p $app --to file -o r.nettrace --providers Microsoft-Windows-DotNETRuntimeRundown:1:4,System.Runtime:ffffffffffffffff:4:EventCounterIntervalSec=1 --duration 3s
expect_code 0 "forward of counters: $(cat err)"

# As probes, if bpftrace is here and can attach.
if command -v bpftrace >/dev/null && is_root; then
	start forwarder "$spoor" forward -q -p $app --to usdt --providers Forwarded-Types:7:5 2>forward.err
	probes() {
		bpftrace -p "$forwarder" -l 'usdt:*' 2>/dev/null | grep -q 'forwarded_types:Warned'
	}
	until_true probes || fail "bpftrace lists no probe of the forwarder: $(cat forward.err)"
	timeout 100 bpftrace -p "$forwarder" -e 'usdt:*:forwarded_types:Warned { printf("%d %d\n", arg0, arg1); @n++; if (@n > 20) { exit(); } }' >probed 2>probed.err || :
	if grep -qiE 'permission denied|not permitted' probed.err; then
		echo "bpftrace may not attach here: $(grep -iE -m 1 'permission denied|not permitted' probed.err)"
	else
		grep -E '^[0-9]+ [0-9]+$' probed | awk -v pid=$app 'NR > 1 && $1 != last + 1 { bad = 1 } $2 != pid { bad = 1 } { last = $1 } END { exit bad || NR < 10 }' ||
			fail "the events of the probe: $(head -n 5 probed) $(head -n 5 probed.err)"
	fi
	kill -INT $forwarder && wait $forwarder || fail "forward --to usdt: $(cat forward.err)"
fi

# Through LTTng to babeltrace2, with a separate session daemon in a private /run.
if command -v lttng-sessiond >/dev/null && command -v babeltrace2 >/dev/null && is_root && unshare --mount true 2>/dev/null; then
	mkdir lttng
	cat >lttng.sh <<-SH
		mount -t tmpfs none /run || exit 0
		export HOME=$scratch/lttng LTTNG_HOME=$scratch/lttng
		lttng-sessiond --no-kernel >daemon.log 2>&1 &
		daemon=\$!
		for _ in \$(seq 600); do lttng --no-sessiond list >/dev/null 2>&1 && break; sleep 0.1; done
		lttng --no-sessiond create s --output=$scratch/lttng/out && lttng --no-sessiond enable-channel -u c &&
			lttng --no-sessiond enable-event -u -c c 'Forwarded_Types:*' && lttng --no-sessiond start || exit 1
		"$spoor" forward -p $app --to lttng --providers Forwarded-Types:7:5 --duration 4s 2>lttng.err
		echo \$? >lttng.code
		"$spoor" forward -p $app --to lttng --providers Forwarded-Types:8:5 --duration 2s 2>long.err
		echo \$? >long.code
		lttng --no-sessiond destroy
		kill \$daemon
		wait \$daemon
	SH
	unshare --mount sh lttng.sh >lttng.log 2>&1 || fail "LTTng: $(cat lttng.log)"
	if [ -e lttng.code ]; then
		[ "$(cat lttng.code)" = 0 ] || fail "forward --to lttng: $(cat lttng.err)"
		# Events whose name is too long for LTTng are counted.
		[ "$(cat long.code)" = 1 ] || fail "forward --to lttng of too long a name ends with $(cat long.code): $(cat long.err)"
		has long.err '^[0-9,]+ events of [1-3] kinds? received in .*, [0-9,]+ could not be forwarded'
		babeltrace2 lttng/out >ctf 2>err || fail "babeltrace2: $(cat err)"
		has ctf 'Forwarded_Types:Numbers: .* flag = 1, i8 = -8, u8 = 200, i16 = -16, u16 = 60000, u32 = 4000000000, i64 = -64, u64 = 18446744073709551615, f32 = 0\.5, f64 = 0\.25, origin_pid = '
		has ctf 'Forwarded_Types:Others: .* text = "naïve \\"quoted\\"", letter = "x", '
		has ctf 'Forwarded_Types:Described: .* Text = "a", Inner_Depth = 2, Inner_Name = "d", origin_pid'
		# Every event from the first recorded one on.
		sed -n 's/.*Forwarded_Types:Warned: .*{ number = \([0-9]*\),.*/\1/p' ctf | awk 'NR > 1 && $1 != last + 1 { bad = 1 } { last = $1 } END { exit bad || NR < 10 }' || fail "events are missing: $(grep -c Warned ctf) of them"
	fi
fi

# As user_events, with a stand-in for the kernel's interface: fields and values are those of the file.
if command -v python3 >/dev/null && ! is_sanitized; then
	mkdir user_events
	echo '*' >user_events/enabled
	: >user_events/written
	start forwarder env USER_EVENTS_FOLDER="$scratch/user_events" LD_PRELOAD="$(dirname "$spoor")/tests/lib/libuser_events_stand_in.so" \
		"$spoor" forward -p $app --to user-events --providers Forwarded-Types:7:5 2>forward.err
	written() {
		[ "$(grep -c '^Forwarded_Types' user_events/written)" -gt 200 ]
	}
	until_true written || fail "no events in user_events: $(cat forward.err)"
	kill -INT $forwarder && wait $forwarder || fail "forward --to user-events: $(cat forward.err)"
	has forward.err 'forwarding events of .* to user-events'
	head -n -1 user_events/written >user_events/whole
	python3 "$top/tests/lib/event_header.py" user_events/whole >user_events/decoded 2>err || fail "an event is malformed: $(cut -c 1-300 err)"
	jq -es 'map(select(.event == "Warned") | .fields.number) | length > 10 and . == [range(.[0]; .[0] + length)]' user_events/decoded >/dev/null || fail "events are missing in user_events"
	jq -es 'map(select(.event == "Warned")) | all(.[]; .level == 3 and .fields.origin_pid == ($a | tonumber))' --arg a $app user_events/decoded >/dev/null || fail "other levels or origins in user_events"
	for name in Numbers Others Described; do
		jq -cS --arg name $name 'select(.event == $name) | .fields | with_entries(select(.key | startswith("origin_") | not)) | del(.number, .Number, .when)' user_events/decoded | sort -u >a
		events_of f.nettrace $name | jq -cS 'del(.number, .Number, .when)' | sort -u >b
		[ -s a ] || fail "no $name in user_events"
		comm -23 a b >other
		[ ! -s other ] || fail "$name in user_events: $(head -n 1 other), in the file: $(head -n 1 b)"
	done
fi

# Mistakes.
misused() {
	wanted=$1 && shift
	code_of "$spoor" forward "$@"
	expect_code 2 "forward $*"
	has err "$wanted"
}
misused '\-\-to is missing: usdt' -p $app --providers A
misused "not 'none'" -p $app --to none --providers A
misused '\-o FILE goes with \-\-to file' -p $app --to file --providers A
misused '\-o FILE goes with \-\-to file' -p $app --to usdt -o x --providers A
misused '\-\-providers or \-\-profile is missing' -p $app --to usdt
code_of "$spoor" forward -p $app --to file -o none/x.nettrace --providers A
expect_code 1 "a folder that does not exist"
has err "^cannot write 'none/x\.nettrace': No such file or directory"
ln -s elsewhere link.nettrace
code_of "$spoor" forward -p $app --to file -o link.nettrace --providers A
expect_code 1 "a link"
[ ! -e elsewhere ] || fail "it wrote through a link"

# Killed, or its program is killed. The file is only the user's.
start forwarder "$spoor" forward -p $app --to file -o k.nettrace --providers Forwarded-Types:7:5 2>forward.err
until_true grep -q '^forwarding' forward.err || fail "it does not forward: $(cat forward.err)"
kill -9 $forwarder
wait $forwarder 2>/dev/null
until_true no_session $app || fail "a session is left of a killed forwarder: $(sessions $app)"
[ "$(stat -c %a k.nettrace)" = 600 ] || fail "others can read the file: $(stat -c %a k.nettrace)"
"$spoor" events k.nettrace >/dev/null 2>err || fail "its file cannot be read: $(cat err)"
start forwarder "$spoor" forward -p $app --to file -o e.nettrace --providers Forwarded-Types:7:5 2>forward.err
until_true grep -q '^forwarding' forward.err || fail "it does not forward: $(cat forward.err)"
kill -9 $app
wait $forwarder || fail "the program was killed: $(cat forward.err)"
has forward.err '^the process has ended, or its runtime has ended the session'
exit 0
