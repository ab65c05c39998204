#!/bin/sh
# logger_user_events.sh SPOOR: libspoor's logger for user_events, with a stand-in for the kernel's interface: all types and values, activities, tools that come and go, children of fork().
here=$(dirname "$(realpath "$0")")
. "$here/../feature/prelude"
command -v python3 >/dev/null || skip "no python3 here"
! is_sanitized || skip "a preloaded stand-in is not for sanitizers"
build=$(dirname "$spoor")
writer=$build/tests/lib/logger_writer
mkfifo input
exec 9<>input
export USER_EVENTS_FOLDER="$scratch"

# writer WORD...: starts logger_writer and sets $pid.
writer() {
	rm -f events
	start WRITER sh -c 'LD_PRELOAD=$0 exec "$@" <input >events' "$build/tests/lib/libuser_events_stand_in.so" "$writer" user-events "$@"
	pid=$WRITER
	until_true grep -q '^ready' events || fail "logger_writer did not start"
}

writer_end() {
	echo >&9
	wait "$pid" || fail "logger_writer failed: $(cat events)"
}

# enable PATTERN...
enable() {
	printf '%s\n' "$@" >enabled.new
	mv enabled.new enabled
}

# rounds COUNT: waits for so many more rounds.
rounds() {
	first=$(grep -c '^round' events || :)
	until_true sh -c '[ "$(grep -c "^round" events)" -ge "$0" ]' $((first + $1)) || fail "the events are not enabled: $(tail -n 3 events)"
}

decode() {
	python3 "$here/event_header.py" written >decoded 2>err || fail "an event is malformed: $(cat err)"
}

# All kinds of event.
: >written
writer
for name in Types_L4K11 Types_L5K0 Types_L4K0 Types_L1K0 Test_Shop_L3K8000000000000001 Test_Shop_L5K2 Test_Shop_L3K1 Run_Time_L2K4; do
	has registered "^\+ $name $pid\$"
done
[ "$(sort registered | uniq -d)" = '' ] || fail "a tracepoint is registered twice"
[ ! -s written ] || fail "events are written that nothing enabled"
enable '*'
rounds 20
decode
jq -cS 'del(.pid, .tid)' decoded | sort -u >values
cat >expected <<-'JSON'
	{"event":"Arrays","fields":{"Blob":"0x0102ff","Doubles":[0.5,-2.0],"Last":65535,"Numbers":[7,0,4294967295],"Point":{"Label":"a","X":1,"Y":1.5},"Points":[{"Label":"a","X":1,"Y":1.5},{"Label":"€","X":-2,"Y":2.5}],"Texts":["one","","dräi"]},"id":2,"keywords":"0x0","level":5,"opcode":0,"provider":"Types","version":0}
	{"event":"Made","fields":{"Number":4711,"Text":"made at run time"},"id":32768,"keywords":"0x4","level":2,"opcode":0,"provider":"Run_Time","version":0}
	{"event":"Nested","fields":{"First":9,"Last":77,"Point":{"Label":"€","X":-2,"Y":2.5}},"id":3,"keywords":"0x0","level":4,"opcode":0,"provider":"Types","version":0}
	{"event":"Nothing","fields":{},"id":4,"keywords":"0x0","level":1,"opcode":0,"provider":"Types","version":0}
	{"event":"Plain","fields":{"Char":"€","F32":1.25,"F64":-2.5,"Guid":"00112233-4455-6677-8899-aabbccddeeff","I16":-1600,"I32":-320000,"I64":-64000000000,"I8":-8,"Pointer":"0x7f0012345678","Text":"grüß 🐟","Text16":"wä€","Time":133444736001234567,"U16":60000,"U32":4000000000,"U64":18000000000000000000,"U8":200,"Yes":true},"id":1,"keywords":"0x11","level":4,"opcode":0,"provider":"Types","version":3}
	{"event":"order","fields":{"id":7,"name":"tea"},"id":1,"keywords":"0x8000000000000001","level":3,"opcode":0,"provider":"Test_Shop","version":0}
	{"event":"refund","fields":{"amount":-5},"id":2,"keywords":"0x2","level":5,"opcode":0,"provider":"Test_Shop","version":0}
JSON
jq -cS . expected | sort -u >wanted
jq -cS . values | sort -u >found
diff wanted found || fail "other values than were fired"
[ "$(jq -r '"\(.pid) \(.tid)"' decoded | sort -u)" = "$pid $pid" ] || fail "events of another thread"
has events '^enable Test-Shop on level 5 keywords 0x8000000000000003 any 1$'
echo "all kinds of event: all values right"

# A tool that leaves, and one that wants a level.
enable ''
until_true grep -q '^enable Test-Shop off .* any 0$' events || fail "the events are not disabled"
: >written
enable 'Test_Shop_L3K8*'
until_true grep -q '^enable Test-Shop on level 3 keywords 0x8000000000000001 any 1$' events || fail "the callback has not the level of the enabled tracepoint"
until_true [ -s written ]
decode
[ "$(jq -r .event decoded | sort -u)" = order ] || fail "other events than the tool enabled"
enable ''
writer_end
[ "$(grep -c '^+' registered)" = "$(grep -c '^-' registered)" ] || fail "tracepoints are left at the end: $(cat registered)"

# Activities, and a text and arrays that are larger than what is converted on the stack of the usual event.
: >written
enable '*'
USER_EVENTS_FOLDER=$scratch LD_PRELOAD=$build/tests/lib/libuser_events_stand_in.so "$writer" user-events activities >out 2>err || fail "activities: $(cat err)"
decode
jq -es 'map(select(.event == "refund") | has("activity")) == [false, true, true, false]' decoded >/dev/null || fail "the activities of events: $(grep refund decoded)"
jq -es 'map(select(.event == "ActivityStart")) | .[0].opcode == 1 and (.[0] | has("related") | not) and .[1].related == .[0].activity and .[1].activity != .[0].activity' \
	decoded >/dev/null || fail "the related activity: $(grep Start decoded)"
jq -es 'map(select(.event == "order") | .fields.name | length) == [2000, 6000]' decoded >/dev/null || fail "long texts: $(jq -c 'select(.event == "order") | .fields.name | length' decoded)"

# A tool comes and goes while four threads fire, signal handlers fire, and children are forked.
: >written
enable ''
writer churn
for i in 1 2 3 4 5 6 7 8; do
	enable 'Types_*' 'Test_Shop_L3*'
	[ $((i % 2)) = 0 ] || rounds 1
	enable ''
done
enable 'Types_L4*' 'Test_Shop_L3*'
rounds 6
writer_end
decode
jq -r 'select(.event == "child") | "\(.pid) \(.fields.pid)"' decoded >pids
awk '$1 != $2 { bad = 1 } END { exit bad || NR < 2 }' pids || fail "no events of children with their own process id: $(head -n 2 pids)"
jq -es 'any(.[]; .event == "order" and .fields.name == "handler")' decoded >/dev/null || fail "no event of a signal handler"
echo "a tool came and went; signal handlers and children fired"

# exit() while threads and signal handlers fire, with events enabled.
: >written
for i in 1 2 3 4 5 6 7 8 9 10; do
	LD_PRELOAD=$build/tests/lib/libuser_events_stand_in.so "$writer" user-events exit >out 2>err || fail "exit while threads fire: $? $(cat err)"
	has out '^enabled'
done
python3 "$here/event_header.py" written >decoded 2>err || fail "an event is malformed: $(cut -c 1-300 err)"
echo "ten programs ended while they fired"

# Where there are none.
unset USER_EVENTS_FOLDER
if [ ! -e /sys/kernel/tracing/user_events_data ] && [ ! -e /sys/kernel/debug/tracing/user_events_data ]; then
	"$writer" user-events <input >out 2>err && fail "it starts without the kernel's interface"
	has err 'No such file'
fi
exit 0
