#!/bin/sh
# spoor forward: one event of a .NET program reads alike by EventPipe, as JSON and with its types, in a file and in LTTng, by spoor, babeltrace2 and bpftrace: name, level, fields, values, thread, activities.
. "$(dirname "$(realpath "$0")")/../prelude"
for tool in lttng lttng-sessiond babeltrace2 python3; do
	command -v $tool >/dev/null || skip "$tool is not in PATH (Debian: lttng-tools, babeltrace2, python3)"
done
ldconfig -p 2>/dev/null | grep -q 'liblttng-ust\.so\.1' || skip "liblttng-ust.so.1 is not installed (Debian: liblttng-ust1)"
! grep -q '^SPOOR_SANITIZE:[A-Z]*=.' "$(dirname "$spoor")/CMakeCache.txt" || skip "liblttng-ust keeps memory that a sanitizer reports"
# Root's session daemon serves the whole machine: this one has a separate /run.
if [ -z "${SPOOR_TEST_OWN_RUN:-}" ]; then
	is_root || skip "a session daemon of its own needs a mount namespace, and that needs root"
	unshare --mount true 2>/dev/null || skip "no mount namespace can be made here"
	cd / && rm -rf "$scratch"
	SPOOR_TEST_OWN_RUN=yes exec unshare --mount sh "$here/forward/forward_alike.sh" "$spoor"
fi
. "$here/programs/managed/prelude"
program forwarded
mount -t tmpfs none /run || skip "nothing can be mounted on /run"
start app dotnet "$program" "$scratch/ready"
until_true [ -e ready ] || fail "the program does not start"
mkdir home
start DAEMON env HOME="$scratch/home" LTTNG_HOME="$scratch/home" lttng-sessiond --no-kernel >daemon.log 2>&1
export LTTNG_HOME="$scratch/home"
lttng_do() {
	HOME=$scratch/home lttng --no-sessiond "$@" >>lttng.log 2>&1
}
until_true lttng_do list || fail "the session daemon does not answer"
lttng_do create s --output="$scratch/out" && lttng_do enable-channel -s s -u c && lttng_do add-context -s s -u -c c -t vpid -t vtid &&
	lttng_do enable-event -s s -u -c c '*' && lttng_do start s || fail "LTTng: $(cat lttng.log)"

# All ways at the same time.
forwarder() {
	name=$1 && shift
	start "$name" env HOME="$scratch/home" "$spoor" forward -p "$app" --providers Forwarded-Types:7:5 "$@" 2>"$name.err"
	until_true grep -q '^forwarding' "$name.err" || fail "forward $*: $(cat "$name.err")"
}
forwarder TYPED --to lttng
forwarder JSON --to lttng --as-json
forwarder FILE --to file -o f.nettrace
forwarder JSON_FILE --to file -o j.nettrace --as-json
forwarder PROBES --to usdt
start TRACER "$spoor" trace -q -p "$app" --providers Forwarded-Types:7:5 --rundown false -o t.nettrace 2>trace.err
traced() {
	"$spoor" events --json t.nettrace >traced.json 2>/dev/null
	[ "$(value_lines traced.json 'map(select(.event == "Warned")) | length')" -ge 40 ]
}
probed=''
if command -v bpftrace >/dev/null; then
	probes() {
		bpftrace -p "$PROBES" -l 'usdt:*' 2>/dev/null | grep -q 'forwarded_types:Warned'
	}
	until_true probes || fail "bpftrace finds no probes"
	# number, pid, thread, and the two halves of the activity's guid
	timeout 100 bpftrace -p "$PROBES" -e 'usdt:*:forwarded_types:Warned {
		printf("%d %d %d %lx %lx\n", arg0, arg1, arg2, *(uint64 *)arg4, *(uint64 *)(arg4 + 8)); @n++; if (@n > 20) { exit(); } }' >bpf 2>bpf.err && probed=yes || :
fi
until_true traced || fail "no events in the trace: $(cat trace.err)"
for each in $TRACER $TYPED $JSON $FILE $JSON_FILE $PROBES; do
	kill -INT "$each" && wait "$each" || fail "a forwarder: $(cat ./*.err)"
done
lttng_do destroy s || fail "LTTng: $(cat lttng.log)"

# babeltrace2 and spoor read the same of LTTng's trace.
babeltrace2 --clock-gmt --clock-date out >peer 2>err || fail "babeltrace2 cannot read the trace"
"$spoor" events --json out >own 2>err || fail "spoor cannot read the trace: $(cat err)"
count=$(LC_ALL=C.UTF-8 python3 "$here/ctf_compare.py" peer own 2>&1) || fail "$count"

# One line for each event: name, level, fields, process, thread, activity. A Boolean of LTTng is a number, its date counts 100 ns, its structs are flat.
alike='def flat: with_entries(if (.value | type) == "object" then .key as $k | .value | to_entries[] | .key = $k + "_" + .key else . end);
	def plain: flat | with_entries(select(.key | startswith("origin_") | not)) |
		if .flag == true then .flag = 1 else . end | if (.when | type) == "string" then .when = ((.when | fromdate) + 11644473600) * 10000000 else . end;
	def id: if . == "00000000-0000-0000-0000-000000000000" then null else . end;
	select(.event != "Arrays") |'
typed="$alike"' select(.provider == "Forwarded_Types" or .provider == "Forwarded-Types") |
	{ name: .event, level, fields: (.fields | plain), pid: .fields.origin_pid, tid: .fields.origin_tid, activity: (.fields.origin_activity_id | id) }'
json="$alike"' select(.provider == "EventSource" and .fields.EventName != "Arrays") | .level as $l | .fields as $f | $f.Payload | fromjson | .fields as $p |
	{ name: $f.EventName, level: $l, fields: ($p | plain), pid: $f.origin_pid, tid: $f.origin_tid, activity: ($f.origin_activity_id | id) }'
direct="$alike"' select(.provider == "Forwarded-Types") | { name: .event, level, fields: (.fields | plain), pid, tid, activity: (.activity | id) }'
# Those with a number; the same range of numbers of each way.
lines() {
	jq -cS "$1" "$2" | jq -cS 'select(.fields.number // .fields.Number)' >"$3.all" || fail "$3: cannot be read"
}
"$spoor" events --json t.nettrace >t.json
"$spoor" events --json f.nettrace >f.json
"$spoor" events --json j.nettrace >j.json
lines "$direct" t.json direct
lines "$typed" f.json typed_file
lines "$json" j.json json_file
lines "$typed" own typed_lttng
lines "$json" own json_lttng
for way in direct typed_file json_file typed_lttng json_lttng; do
	jq -s 'map(.fields.number // .fields.Number) | min, max' $way.all | tr '\n' ' ' >$way.range
done
first=$(for way in ./*.range; do awk '{ print $1 }' "$way"; done | sort -n | tail -n 1)
last=$(for way in ./*.range; do awk '{ print $2 }' "$way"; done | sort -n | head -n 1)
[ $((last - first)) -ge 15 ] || fail "only the events $first to $last came by all ways: $(cat ./*.range)"
for way in direct typed_file json_file typed_lttng json_lttng; do
	jq -cS --argjson a $((first + 1)) --argjson b $((last - 1)) 'select((.fields.number // .fields.Number) as $n | $n >= $a and $n <= $b)' $way.all | sort >$way.lines
	diff direct.lines $way.lines >difference || fail "$way differs from the trace (<): $(head -n 4 difference)"
done
json_lines direct.lines 'any(.[]; .name == "Warned" and .activity == "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")'
[ "$(wc -l <direct.lines)" = $(((last - first - 1) * 3)) ] || fail "events are missing: $(wc -l <direct.lines)"
# The other one has no number, and is the same each time.
for way in t.json f.json own; do
	jq -cS "$typed" $way | grep '"Others"' | jq -cS '[.fields, .activity]' | sort -u
done | sort -u >others
[ "$(wc -l <others)" = 1 ] || fail "the texts differ: $(cat others)"
if [ -n "$probed" ]; then
	grep -E '^[0-9]+ ' bpf | awk -v pid="$app" '$2 != pid || $3 != pid || $4 $5 != "69784b5a0f1e2d3cf0e1d2c3b4a59687" || (NR > 1 && $1 != last + 1) { bad = 1 } { last = $1 }
		END { exit bad || NR < 10 }' || fail "the probes: $(head -n 4 bpf)"
else
	echo "bpftrace cannot attach here: $(grep -v '^$' bpf.err 2>/dev/null | head -n 1)"
fi
echo "$(wc -l <direct.lines) events are alike by five ways, $count between babeltrace2 and spoor"
exit 0
