#!/bin/sh
# spoor inject: a .NET process fires its EventSource events itself for a tracer, with the names, types and values of a trace, on its own threads; on, changed, off and on again; mistakes do not harm it.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
top=$(realpath "$here/../..")
! is_sanitized || skip "a library with a sanitizer cannot be loaded into a .NET process"
command -v python3 >/dev/null || skip "python3 is not installed"
library=$(dirname "$spoor")/libspoor.so.0
[ -e "$library" ] || skip "libspoor.so is not built"
program inject
hook=$program
program forwarded
mkdir user_events
: >user_events/enabled
: >user_events/written
export TMPDIR="$scratch"
start app env USER_EVENTS_FOLDER="$scratch/user_events" LD_PRELOAD="$(dirname "$spoor")/tests/lib/libuser_events_stand_in.so" dotnet "$program" "$scratch/ready"
until_true [ -e ready ] || fail "the program does not start"
folders() {
	find /tmp -maxdepth 1 -name 'spoor-inject-*' -user "$(id -un)" 2>/dev/null | sort
}
folders >before

# inject WORD...: with the files that were built.
inject() {
	code_of "$spoor" inject "$@" -p $app --hook "$hook" --library "$library"
}

# Mistakes, before anything is loaded.
misused() {
	wanted=$1 && shift
	code_of "$spoor" inject "$@"
	expect_code 2 "inject $*"
	has err "$wanted"
}
misused '\-\-providers is missing' -p $app
misused 'the only word it takes is off' on -p $app
misused 'off takes no \-\-providers' off -p $app --providers A
inject off
expect_code 1 "nothing to end"
has err 'nothing was injected into Forwarded'
cp "$program" other.dll
code_of "$spoor" inject -p $app --providers Forwarded-Types --hook other.dll --library "$library"
expect_code 1 "another assembly"
has err 'it is not the assembly Spoor\.Inject with a class StartupHook'
head -c 5000 "$hook" >cut.dll
code_of "$spoor" inject -p $app --providers Forwarded-Types --hook cut.dll --library "$library"
expect_code 1 "half an assembly"
code_of "$spoor" inject -p $app --providers Forwarded-Types --hook none.dll --library "$library"
expect_code 1 "no assembly"
has err "cannot open 'none\.dll'"
mkfifo fifo.dll
code_of timeout 100 "$spoor" inject -p $app --providers Forwarded-Types --hook fifo.dll --library "$library"
expect_code 1 "a FIFO as the assembly"
has err "'fifo\.dll' is not a file of bytes"
# The program reports a library that it cannot load, and keeps running.
code_of "$spoor" inject -p $app --providers Forwarded-Types --hook "$hook" --library "$hook"
expect_code 1 "a library that is none"
has err 'Forwarded \([0-9]+\): .*libspoor\.so\.0'
kill -0 $app || fail "the program has ended"
folders | cmp -s before - || fail "a folder is left"

# The same events, with the same values, as a trace of the program has.
inject --to user-events --providers Forwarded-Types:7:5
expect_code 0 "inject: $(cat err)"
has err "fires its events as user_events; spoor inject off -p [0-9]+ --hook $hook ends it"
# The program has loaded the files: however it ends, none is left.
folders | cmp -s before - || fail "a folder is left: $(folders)"
echo 'Forwarded_Types*' >user_events/enabled
written() {
	[ "$(grep -c '^Forwarded_Types' user_events/written)" -gt "$1" ]
}
until_true written 200 || fail "no events in user_events"
code_of "$spoor" trace -q -p $app --providers Forwarded-Types:7:5 --rundown false -o t.nettrace --duration 2s
expect_code 0 "trace"
"$spoor" events --json t.nettrace >events.json 2>err || fail "events: $(cat err)"
decode() {
	head -n -1 user_events/written >user_events/whole
	python3 "$top/tests/lib/event_header.py" user_events/whole >user_events/decoded 2>err || fail "an event is malformed: $(cut -c 1-300 err)"
}
decode
for name in Numbers Others Described; do
	jq -cS --arg name $name 'select(.event == $name) | .fields | with_entries(select(.key | startswith("origin_") | not)) | del(.number, .Number, .when)' user_events/decoded | sort -u >a
	jq -cS --arg name $name 'select(.event == $name) | .fields | del(.number, .Number, .when)' events.json | sort -u >b
	[ -s a ] && [ -s b ] || fail "no $name"
	cmp -s a b || fail "$name in user_events: $(head -n 1 a), in the trace: $(head -n 1 b)"
done
# None is missing or double; the activity, and the thread that fired.
jq -es 'map(select(.event == "Warned")) | (map(.fields.number) | length > 10 and . == [range(.[0]; .[0] + length)])
	and all(.[]; .level == 3 and .fields.origin_activity_id == "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")' user_events/decoded >/dev/null || fail "the events Warned: $(grep -m 3 Warned user_events/decoded)"
[ "$(awk '/^Forwarded_Types/ { print $2, $3 }' user_events/whole | sort -u)" = "$app $app" ] || fail "other threads: $(awk '{ print $2, $3 }' user_events/whole | sort -u | head)"
# An array, which the runtime does not describe to other tools.
jq -es 'map(select(.event == "Arrays").fields.Values) | length > 0 and all(. == [1, 2, 3])' user_events/decoded >/dev/null || fail "the events Arrays: $(grep -m 1 Arrays user_events/decoded)"
until_true no_session $app || fail "a session is open"

# Other events, from the same assembly.
inject --to user-events --providers Forwarded-Types:2:5
expect_code 0 "a second time: $(cat err)"
: >user_events/written
until_true written 40 || fail "no events after the second time"
decode
[ "$(jq -r .event user_events/decoded | sort -u)" = Others ] || fail "with the keyword 2: $(jq -r .event user_events/decoded | sort -u | tr '\n' ' ')"

# A field has one type whatever its value is: null, a date that no tool's time can have. So an event is one kind of event, also with and without an activity.
inject --to user-events --providers Forwarded-Types:10:5
expect_code 0 "values: $(cat err)"
: >user_events/written
until_true written 40 || fail "no events with odd values"
decode
jq -es 'map(select(.event == "Dated").fields.when) | length > 10 and all(.[]; type == "number")
	and (unique | . == [0, 126444736000000000, 220582656000000000, 2650467743999999999])' user_events/decoded >/dev/null || fail "the events Dated: $(grep -m 5 Dated user_events/decoded)"
jq -es 'map(select(.event == "Bytes").fields | {data, text}) | length > 10 and (unique == [{data: "0x", text: ""}, {data: "0x", text: "text"}, {data: "0x010203", text: ""}, {data: "0x010203", text: "text"}])' \
	user_events/decoded >/dev/null || fail "the events Bytes: $(grep -m 5 Bytes user_events/decoded)"
jq -es 'all(.[]; .fields | has("origin_activity_id") and has("origin_related_activity_id"))' user_events/decoded >/dev/null || fail "events without an activity have other fields"

inject off
expect_code 0 "off: $(cat err)"
has err ': off; [0-9,]+ events fired, [0-9,]+ that no tool had enabled, 0 could not be fired'
folders | cmp -s before - || fail "a folder is left"
: >user_events/written
sleep 0.3
[ ! -s user_events/written ] || fail "events after the end"
inject --to user-events --providers Forwarded-Types:1:5
expect_code 0 "on again: $(cat err)"
until_true written 20 || fail "no events after the third time"
inject off
expect_code 0 "off again: $(cat err)"

# The counters of a source, whose interval is an argument.
inject --to user-events --providers 'System.Runtime:0:4:EventCounterIntervalSec=1'
expect_code 0 "counters: $(cat err)"
echo '*' >user_events/enabled
: >user_events/written
counted() {
	grep -q '^System_Runtime' user_events/written
}
until_true counted || fail "no counters"
inject off
expect_code 0 "off after counters: $(cat err)"

# Events that no tool enables are not counted as fired. The command that is printed ends it.
: >user_events/enabled
inject --to user-events --providers Forwarded-Types:1:5
expect_code 0 "not enabled: $(cat err)"
sed -n 's/.*; spoor \(.*\) ends it.*/\1/p' err >printed
sleep 0.5
code_of sh -c "exec \"\$0\" $(cat printed)" "$spoor"
expect_code 0 "the printed command: $(cat err)"
has err ': off; 0 events fired, [0-9,]+ that no tool had enabled, 0 could not be fired'
echo '*' >user_events/enabled

# One that is killed at any moment: the next one gets its own answer, and leaves nothing.
for wait_ms in 10 14 18 20 22 24 26 28 30 32 34 38; do
	timeout -s KILL 0.0$wait_ms "$spoor" inject -q -p $app --providers Forwarded-Types:1:5 --to user-events --hook "$hook" --library "$library" 2>err
	inject off
	[ $code = 0 ] || has err 'nothing was injected into'
	[ $code = 1 ] || has err ': off; [0-9,]+ events? fired, '
	folders | cmp -s before - || fail "a folder is left after $wait_ms ms: $(folders)"
done
: >user_events/written
sleep 0.3
[ ! -s user_events/written ] || fail "events after the end of killed ones"

# The assembly of another version, of the same name, would end the program.
cp "$hook" newer.dll && printf 'x' >>newer.dll
code_of "$spoor" inject -p $app --providers Forwarded-Types --hook newer.dll --library "$library"
expect_code 1 "another version"
has err 'has loaded Spoor\.Inject\.dll of another version of Spoor'
kill -0 $app || fail "the program has ended"

# A program that switched startup hooks off answers, and does not run it.
value "${program%.dll}.runtimeconfig.json" '.runtimeOptions.configProperties["System.StartupHookProvider.IsSupported"] = false' >no_hooks.json
start unhooked dotnet exec --runtimeconfig no_hooks.json "$program" "$scratch/ready3"
until_true [ -e ready3 ] || fail "the third program does not start"
code_of "$spoor" inject -p $unhooked --providers Forwarded-Types --hook "$hook" --library "$library"
expect_code 1 "startup hooks are off"
has err 'StartupHookProvider\.IsSupported'
kill -0 $unhooked || fail "the third program has ended"
folders | cmp -s before - || fail "a folder is left: $(folders)"

# Of another user, whose folder and files it becomes.
if is_root && command -v setpriv >/dev/null; then
	chmod 777 "$scratch"
	start theirs env HOME="$scratch" setpriv --reuid=65534 --regid=65534 --clear-groups dotnet "$program" "$scratch/ready4"
	until_true [ -e ready4 ] || fail "the program of another user does not start"
	code_of "$spoor" inject -p $theirs --providers Forwarded-Types --hook "$hook" --library "$library"
	expect_code 0 "of another user: $(cat err)"
	range=$(awk '/spoor-inject-.*libspoor/ { print $1; exit }' /proc/$theirs/maps)
	[ "$(stat -L -c %u "/proc/$theirs/map_files/$range")" = 65534 ] || fail "the library is not of the other user"
	code_of "$spoor" inject off -p $theirs --hook "$hook" --library "$library"
	expect_code 0 "off of another user: $(cat err)"
fi
exit 0
