#!/bin/sh
# record --usdt: the values of a program's probes are those that bpftrace reads at the same time; a command's first probe, probes that libspoor makes at run time, images that are mapped later, other processes, mistakes.
. "$(dirname "$(realpath "$0")")/../prelude"
is_root || skip "only root can make uprobes"
program=$(dirname "$spoor")/tests/usdt_target
writer=$(dirname "$spoor")/tests/lib/logger_writer
code_of "$program" early
[ "$code" != 77 ] || skip "usdt_target was built without sys/sdt.h (Debian: systemtap-sdt-dev)"
"$spoor" record -q --usdt 'demo:*' -o first.nettrace -- "$program" early >raised 2>err || {
	grep -q '^cannot record USDT probes' err && skip "$(head -n 1 err)"
	fail "record: $(cat err)"
}

# A command has its probes before its first instruction: all ten rounds see the semaphore.
has raised '^10$'
"$spoor" events first.nettrace --json --event step >steps
json_lines steps 'map(.fields.arg0) == [range(1; 11)]'
json_lines steps 'all(.[]; .provider == "demo" and .pid == .tid and .stack[0].function == "step")'
json_lines steps '.[1].fields | .arg1 == -5000000002 and .arg2_text == "grüß 🐟" and .arg3 == -2 and .arg4 == 1 and .arg5 == 60000 and .arg6 == 12345678901 and .arg7 == 200 and (has("unreadable") | not)'
json_lines steps '.[2].fields.arg2_text | startswith("a name that is longer") and endswith("their limit")'
json_lines steps '.[3].fields.arg2_text == "tea" and .[0].fields.arg2_text == ""'
"$spoor" events first.nettrace --json --event plain >plains
json_lines plains 'length == 10 and all(.[]; .fields == {})'
"$spoor" report first.nettrace >report.out || fail "report"
has report.out ' 10 +demo/step$'
"$spoor" events first.nettrace --json --event Session >session.json
json_lines session.json '.[0].fields.Options | fromjson | .usdt == ["demo:*"]'

# A text whose page the program has not touched is read from the program while it runs, control characters and all; else it is counted as unreadable.
mkfifo input0
exec 5<>input0
start RECORDER sh -c 'exec "$0" record --usdt demo:absent -o late.nettrace -- "$1" absent <input0' "$spoor" "$program" 2>record.err
written_late() {
	"$spoor" events late.nettrace --json --event absent 2>/dev/null | awk 'END { exit NR < 3 }'
}
until_true written_late || fail "no hits of demo:absent: $(cat record.err)"
echo >&5
wait $RECORDER || fail "record: $(cat record.err)"
"$spoor" events late.nettrace --json --event absent >absent
json_lines absent 'length == 3 and all(.[]; .fields.arg0_text == "\u007fELF\u0002\u0001\u0001" and (.fields | has("unreadable") | not))'
"$spoor" events late.nettrace --event absent >absent.text
has_no absent.text "$(printf '[\001\002\177]')"
"$spoor" record --usdt demo:absent -o gone.nettrace -- "$program" absent </dev/null >out 2>record.err || fail "record: $(cat record.err)"
"$spoor" events gone.nettrace --json --event absent >absent
json_lines absent 'length == 3 and all(.[].fields; .arg0_text == "\u007fELF\u0002\u0001\u0001" or .unreadable == "arg0_text")'

# At the same time as bpftrace, which reads the same events.
mkfifo input
exec 9<>input
start PROGRAM sh -c 'exec "$0" <input >program.out' "$program"
until_true grep -q ready program.out || fail "usdt_target did not start"
if command -v bpftrace >/dev/null; then
	start OTHER timeout 100 bpftrace -p $PROGRAM -e "usdt:$program:demo:step { printf(\"%d %lld %s\\n\", arg0, arg1, str(arg2)); }" >peer.out 2>peer.err
	peer_reads() {
		! kill -0 $OTHER 2>/dev/null || grep -q '^[0-9]' peer.out
	}
	until_true peer_reads
	kill -0 $OTHER 2>/dev/null || echo "bpftrace cannot attach here: $(grep -v '^$' peer.err | head -n 1)"
fi
start RECORDER "$spoor" record -p $PROGRAM --usdt demo:step,demo:nothing -o p.nettrace 2>record.err
written() {
	"$spoor" events p.nettrace --json --event step 2>/dev/null | awk 'END { exit NR < 200 }'
}
until_true written || fail "no hits in the recording: $(cat record.err)"
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
has record.err '[0-9] hits of USDT probes in .*, nothing lost'
has_no record.err 'unreadable|could not be'
"$spoor" events p.nettrace --json --event step >steps
# None is missing between the first and the last.
json_lines steps 'map(.fields.arg0) | . == [range(.[0]; .[0] + length)]'
if [ -s peer.out ]; then
	kill -INT $OTHER
	wait $OTHER 2>/dev/null
	# bpftrace reads at most 64 bytes of a string.
	value_lines steps '.[] | select(.fields.arg0 % 4 != 3) | "\(.fields.arg0) \(.fields.arg1) \(.fields.arg2_text)"' | sed 's/ $//' >own.lines
	grep '^[0-9]' peer.out | sed 's/ $//' | sort >peer.lines
	sort own.lines | comm -12 - peer.lines >same
	first=$(sed -n '1s/ .*//p' own.lines)
	wanted=$(awk -v from="$first" -v to="$(sed -n '$s/ .*//p' own.lines)" '$1 % 4 != 3 && $1 >= from && $1 <= to { n++ } END { print n + 0 }' peer.lines)
	[ "$wanted" -ge 100 ] && [ "$(wc -l <same)" = "$wanted" ] || fail "of $wanted hits that bpftrace has, $(wc -l <same) are the same: $(diff own.lines peer.lines | head -n 4)"
	echo "$wanted hits are those that bpftrace has"
fi

# By name, with copied stacks; what the name does not match is not recorded, though it maps the same file.
cp "$program" other_target
mkfifo input2
exec 8<>input2
start SECOND sh -c 'exec ./other_target <input2 >second.out' x
until_true grep -q ready second.out || fail "other_target did not start"
start RECORDER "$spoor" record -n other_target --call-graph dwarf --usdt 'd?mo' -o n.nettrace 2>record.err
written_n() {
	"$spoor" events n.nettrace --json --event step 2>/dev/null | awk 'END { exit NR < 20 }'
}
until_true written_n || fail "no hits of other_target: $(cat record.err)"
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
"$spoor" events n.nettrace --json --event plain >own
json_lines own 'length > 10 and all(.[]; .pid == ($a | tonumber))' $SECOND
json_lines own 'all(.[]; .stack | map(.function) | .[0:2] == ["step", "main"])'
echo >&8
wait $SECOND

# Probes that libspoor makes at run time, one of them during the recording; texts and numbers as fired.
if [ "$(uname -m)" = x86_64 ]; then
	mkfifo input3
	exec 7<>input3
	start WRITER sh -c 'exec "$0" usdt <input3 >rounds' "$writer"
	until_true grep -q '^ready' rounds || fail "logger_writer did not start"
	start RECORDER "$spoor" record -p $WRITER --usdt 'types,test_shop,run_time:Made' -o l.nettrace 2>record.err
	written_l() {
		"$spoor" events l.nettrace --json --event Made 2>/dev/null | awk 'END { exit NR < 20 }'
	}
	until_true written_l || fail "no hits of libspoor's probes: $(cat record.err)"
	kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
	"$spoor" events l.nettrace --json >all
	json_lines all 'map(select(.event == "Plain_V3")) | length > 10 and all(.[].fields; [.arg0, .arg1, .arg3, .arg6, .arg7, .arg8] == [1, -8, -1600, 4000000000, -64000000000, 18000000000000000000] and .arg15_text == "grüß 🐟" and .arg16_text == "wä€")'
	json_lines all 'map(select(.event == "Made")) | length > 10 and all(.[].fields; .arg0 == 4711 and .arg1_text == "made at run time")'
	json_lines all 'map(select(.event == "order")) | length > 10 and all(.[].fields; .arg0 == 7 and .arg1_text == "tea")'
	has rounds '^enable Test-Shop on level 5 keywords 0x8000000000000003 any 1$'
	until_true grep -q '^enable Test-Shop off .* any 0$' rounds || fail "the probes stay enabled"
	echo >&7
	wait $WRITER
fi

# The whole machine: a process that starts during the recording and maps a file that no other process has.
cp "$program" third_target
mkfifo input4
exec 6<>input4
start RECORDER "$spoor" record -a --no-dotnet --usdt demo -o a.nettrace 2>record.err
until_true [ -e a.nettrace ] || fail "the recording does not begin: $(cat record.err)"
start THIRD sh -c 'exec ./third_target <input4 >third.out' x
written_a() {
	"$spoor" events a.nettrace --json --event step >steps 2>/dev/null && [ "$(value_lines steps 'any(.[]; .pid == ($a | tonumber))' $THIRD)" = true ]
}
until_true written_a || fail "no hits of a process that started later: $(cat record.err)"
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
echo >&6
echo >&9

# Processes that end immediately: the first one's file is probed for those that follow, and missing events are reported.
cp "$program" short_target
start RECORDER "$spoor" record -a --no-dotnet --usdt demo:plain -o short.nettrace 2>record.err
until_true [ -e short.nettrace ] || fail "the recording does not begin: $(cat record.err)"
written_short() {
	./short_target early >out
	"$spoor" events short.nettrace --json --event plain 2>/dev/null | awk 'END { exit NR < 10 }'
}
until_true written_short || fail "no hits of short processes: $(cat record.err)"
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
has_no record.err 'no USDT probe'

# Nothing that the names match; mistakes.
"$spoor" record --usdt 'no_such_provider' -o m.nettrace -- true 2>err || fail "record: $(cat err)"
has err '^no USDT probe that --usdt names was in the recorded processes'
"$spoor" report -v m.nettrace >report.out || fail "report"
has report.out 'no image of the recorded processes had a USDT probe'
for wrong in '' ':x' 'x:' 'a:b:c' 'a,'; do
	code_of "$spoor" record --usdt "$wrong" -o w.nettrace -- true
	expect_code 2 "--usdt '$wrong'"
	has err '^(spoor record: )?--usdt .* names no probes'
done
code_of "$spoor" record --usdt demo -t 1 -o w.nettrace
expect_code 2 "threads"
[ ! -e w.nettrace ] || fail "a recording that was not begun"
exit 0
