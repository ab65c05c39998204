#!/bin/sh
# logger_lttng.sh SPOOR [old]: LTTng records libspoor's events with their types, values, levels and thread; sessions that come, filter and go; a child of fork(). old: with LTTng-UST 2.12
# (Debian 11's, fetched into the build folder, or taken from the folder that SPOOR_LTTNG_UST0 names), and without 2.13.
here=$(dirname "$(realpath "$0")")
. "$here/../feature/prelude"
for tool in lttng lttng-sessiond babeltrace2; do
	command -v $tool >/dev/null || skip "$tool is not in PATH (Debian: lttng-tools, babeltrace2)"
done
! grep -q '^SPOOR_SANITIZE:[A-Z]*=thread' "$(dirname "$spoor")/CMakeCache.txt" || skip "the thread sanitizer cannot follow the forked children of a program with LTTng's threads"
build=$(dirname "$spoor")
writer=$build/tests/lib/logger_writer
which=${2:-new}
if [ "$which" = old ]; then
	! is_sanitized || skip "a preloaded library is not for sanitizers"
	old=${SPOOR_LTTNG_UST0:-$build/gc-tests/lttng-ust0}
	why=$(sh "$here/../gc/fetch_lttng" "$old") || skip "no liblttng-ust.so.0: $why"
else
	ldconfig -p 2>/dev/null | grep -q 'liblttng-ust\.so\.1' || skip "liblttng-ust.so.1 is not installed (Debian: liblttng-ust1)"
fi
mkfifo -m 666 input
exec 9<>input

# liblttng-ust does not free what belonged to a session that has ended.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

# A separate session daemon: root's daemon serves the whole machine, so root runs it as the user 65534.
as=''
if is_root; then
	command -v setpriv >/dev/null || skip "setpriv is not in PATH: root's session daemon would be the machine's"
	as='setpriv --reuid=65534 --regid=65534 --clear-groups'
	chmod 755 "$scratch"
	# That user may have no access to the build folder.
	cp "$writer" "$(dirname "$spoor")"/libspoor.so* "$scratch/"
	writer=$scratch/logger_writer
	export LD_LIBRARY_PATH="$scratch"
fi
run=''
if [ "$which" = old ]; then
	mkdir old
	cp "$old"/*.so.* "$build/tests/lib/libwithout_ust1.so" old/
	run="env LD_PRELOAD=$scratch/old/libwithout_ust1.so LD_LIBRARY_PATH=$scratch/old:${LD_LIBRARY_PATH:-}"
fi
mkdir home
! is_root || chown 65534:65534 home
export HOME="$scratch/home" LTTNG_HOME="$scratch/home" TMPDIR="$scratch/home"
start DAEMON $as lttng-sessiond --no-kernel >daemon.log 2>&1
until_true $as lttng --no-sessiond list || fail "the session daemon does not answer"

# writer NAME=VALUE...: starts logger_writer and sets $pid.
writer() {
	rm -f events
	start WRITER sh -c 'exec env "$@" lttng <input >events' sh "$@" $as $run "$writer"
	pid=$WRITER
	until_true grep -q '^ready' events || fail "logger_writer did not start"
}

writer_end() {
	echo >&9
	wait "$pid" || fail "logger_writer failed"
}

session() {
	$as lttng --no-sessiond create "$1" --output="$scratch/home/$1" >>lttng.log 2>&1 || fail "cannot create a session: $(tail -n 3 lttng.log)"
	lttng_do enable-channel -s "$1" -u c
}

lttng_do() {
	$as lttng --no-sessiond "$@" >>lttng.log 2>&1 || fail "lttng $*: $(tail -n 3 lttng.log)"
}

# rounds FILE COUNT: waits for so many more rounds of a writer with the output FILE.
rounds() {
	first=$(grep -c '^round' "$1" || :)
	until_true sh -c '[ "$(grep -c "^round" "$0")" -ge "$1" ]' "$1" $((first + $2)) || fail "the events are not enabled: $(tail -n 3 "$1")"
}

writer
[ "$which" = new ] || grep -q 'liblttng-ust\.so\.0' "/proc/$pid/maps" || fail "the writer has not loaded the old library"
$as lttng --no-sessiond list -u >list 2>&1
has list 'Types:Plain_V3 \(loglevel: TRACE_INFO \(6\)\)'
has list 'Types:Nothing \(loglevel: TRACE_EMERG \(0\)\)'
has list 'Types:Arrays \(loglevel: TRACE_DEBUG \(14\)\)'
has list 'Test_Shop:order \(loglevel: TRACE_WARNING \(4\)\)'
has list 'Run_Time:Made \(loglevel: TRACE_ERR \(3\)\)'

# Every kind of event, all fields.
session all
lttng_do enable-event -s all -u -c c 'T*'
lttng_do enable-event -s all -u -c c 'Run_Time:*'
lttng_do add-context -s all -u -c c -t vpid -t vtid
lttng_do start all
rounds events 20
lttng_do stop all
babeltrace2 --no-delta --clock-seconds home/all >events.all 2>err || fail "babeltrace2 cannot read the trace"
lttng_do destroy all
sed -e 's/^\[[^]]*\] [^ ]* //' -e 's/{ cpu_id = [0-9]* }, //' events.all | sort -u >values
cat >expected <<-END
	Run_Time:Made: { vpid = $pid, vtid = $pid }, { Number = 4711, Text = "made at run time" }
	Test_Shop:order: { vpid = $pid, vtid = $pid }, { id = 7, name = "tea" }
	Test_Shop:refund: { vpid = $pid, vtid = $pid }, { amount = -5 }
	Types:Arrays: { vpid = $pid, vtid = $pid }, { _Blob_length = 3, Blob = [ [0] = 1, [1] = 2, [2] = 255 ], _Numbers_length = 3, Numbers = [ [0] = 7, [1] = 0, [2] = 4294967295 ], _Doubles_length = 2, Doubles = [ [0] = 0x3FE0000000000000, [1] = 0xC000000000000000 ], Texts_count = 3, Texts = "one\n\ndräi", Point_X = 1, Point_Y = 1.5, Point_Label = "a", _Points_length = 34, Points = [ [0] = 1, [1] = 0, [2] = 0, [3] = 0, [4] = 0, [5] = 0, [6] = 0, [7] = 0, [8] = 0, [9] = 0, [10] = 248, [11] = 63, [12] = 1, [13] = 0, [14] = 97, [15] = 0, [16] = 254, [17] = 255, [18] = 255, [19] = 255, [20] = 0, [21] = 0, [22] = 0, [23] = 0, [24] = 0, [25] = 0, [26] = 4, [27] = 64, [28] = 3, [29] = 0, [30] = 226, [31] = 130, [32] = 172, [33] = 0 ], Last = 65535 }
	Types:Nested: { vpid = $pid, vtid = $pid }, { First = 9, Point_X = -2, Point_Y = 2.5, Point_Label = "€", Last = 77 }
	Types:Nothing: { vpid = $pid, vtid = $pid }, { }
	Types:Plain_V3: { vpid = $pid, vtid = $pid }, { Yes = 1, I8 = -8, U8 = 200, I16 = -1600, U16 = 60000, I32 = -320000, U32 = 4000000000, I64 = -64000000000, U64 = 18000000000000000000, F32 = 1.25, F64 = -2.5, Char = 8364, Guid = [ [0] = 51, [1] = 34, [2] = 17, [3] = 0, [4] = 85, [5] = 68, [6] = 119, [7] = 102, [8] = 136, [9] = 153, [10] = 170, [11] = 187, [12] = 204, [13] = 221, [14] = 238, [15] = 255 ], Time = 133444736001234567, Pointer = 0x7F0012345678, Text = "grüß 🐟", Text16 = "wä€" }
END
sort -o expected expected
diff expected values || fail "the values of LTTng are not those that were fired"
has events '^enable Test-Shop on level 5 keywords 0x8000000000000003 any 1$'
until_true grep -q '^enable Test-Shop off .* any 0$' events || fail "the event is not disabled after the session"
echo "all kinds of event: all values right, none twice"

# Two sessions at a time: one by log level, one by a filter on a number and a text.
session level
lttng_do enable-event -s level -u -c c 'T*' --loglevel=TRACE_WARNING
lttng_do start level
session filter
lttng_do enable-event -s filter -u -c c 'Types:Plain_V3' --filter 'I8 == -8 && F64 < 0 && Text == "gr*" && Text16 == "w*" && U32 > 5'
lttng_do enable-event -s filter -u -c c 'Types:Nested' --filter 'Last == 78'
lttng_do enable-event -s filter -u -c c 'Types:Nothing'
lttng_do start filter
rounds events 20
lttng_do destroy level
lttng_do destroy filter
babeltrace2 home/level 2>/dev/null | sed 's/.* \([A-Za-z_]*:[A-Za-z_0-9]*\): .*/\1/' | sort -u >names
printf 'Test_Shop:order\nTypes:Nothing\n' >expected
diff expected names || fail "the log level selects other events"
babeltrace2 home/filter 2>/dev/null >out
has_no out 'Types:Nested'
has out 'Types:Plain_V3'
has out 'Types:Nothing'
echo "log levels and filters select the right events"
writer_end

# exit() while threads and signal handlers fire, and a session records them.
session exit
lttng_do enable-event -s exit -u -c c 'Types:*'
lttng_do start exit
for i in 1 2 3 4 5 6; do
	$as $run "$writer" lttng exit >out 2>err || fail "exit while threads fire: $? $(cat err)"
	has out '^enabled'
done
lttng_do destroy exit
babeltrace2 home/exit 2>err | grep -q 'Types:Nested' || fail "no event of programs that end: $(cat err)"

# Sessions that come and go while four threads fire, signal handlers fire, and children are forked.
start CHURN sh -c 'exec "$@" lttng churn <input >churn.out' sh $as $run "$writer"
churn=$CHURN
until_true grep -q '^ready' churn.out || fail "the churn did not start"
for i in 1 2 3 4 5 6; do
	session "come$i"
	lttng_do enable-event -s "come$i" -u -c c 'Types:*'
	lttng_do start "come$i"
	[ $((i % 2)) = 0 ] || rounds churn.out 2
	lttng_do destroy "come$i"
	[ $((i % 2)) = 0 ] || babeltrace2 "home/come$i" 2>/dev/null | grep -q 'Types:Nested' || fail "session $i has no event"
done
session child
lttng_do enable-event -s child -u -c c 'Test_Shop:child'
lttng_do enable-event -s child -u -c c 'Types:Nested'
lttng_do add-context -s child -u -c c -t vpid
lttng_do start child
rounds churn.out 8
lttng_do destroy child
babeltrace2 home/child 2>/dev/null | grep 'Test_Shop:child' | sed 's/.*vpid = \([0-9]*\) }, { pid = \([0-9]*\) }.*/\1 \2/' >pids
awk '$1 != $2 { bad = 1 } END { exit bad || NR < 2 }' pids || fail "vpid is not the child's: $(head -n 1 pids)"
echo >&9
wait "$churn" || fail "the churn failed: $(cat churn.out)"
echo "six sessions came and went; children have their own id"
