#!/bin/sh
# Diagnostics servers that do not answer, or send without end: every verb ends, a second signal ends it within a second, and nothing stays behind. The
# servers are processes of this test (hostile.c).
. "$(dirname "$(realpath "$0")")/prelude"
hostile=$(dirname "$spoor")/tests/hostile
export TMPDIR=$scratch

for mode in silent idle close flood noise drip trickle; do
	start "server_$mode" "$hostile" runtime $mode >"requests.$mode"
	until_true test -s "requests.$mode" || fail "no server $mode"
done

# case_of NAME LIMIT CODE command...: runs it beside the others. It ends within LIMIT seconds with CODE.
cases=''
case_of() {
	name=$1 limit=$2 want=$3 && shift 3
	(
		timeout -k 1 -s KILL "$limit" "$@" >"out.$name" 2>"err.$name" </dev/null && got=0 || got=$?
		[ "$got" = "$want" ] || echo "$name: exit code $got, not $want: $*"
	) >"case.$name" &
	cases="$cases $!"
	started="$started $!"
}

await_cases() {
	for each in $cases; do wait "$each"; done
	cases=''
	[ -z "$(cat case.*)" ] || {
		cat case.* err.*
		fail "a verb did not end as it should"
	}
	rm -f case.*
}

# A duration is kept, whatever the process does. The end of a session that is open has a limit of its own.
case_of trace_silent 10 1 "$spoor" trace -p "$server_silent" --duration 1s -o silent.nettrace
case_of trace_trickle 10 1 "$spoor" trace -p "$server_trickle" --duration 1s -o trickle.nettrace
case_of trace_close 30 1 "$spoor" trace -q -p "$server_close" --duration 1s -o close.nettrace
case_of trace_flood 60 0 "$spoor" trace -p "$server_flood" --duration 1s -o flood.nettrace
case_of trace_drip 20 0 "$spoor" trace -p "$server_drip" --duration 1s -o drip.nettrace
case_of counters_silent 20 1 "$spoor" counters -p "$server_silent" --count 2
case_of counters_idle 30 1 "$spoor" counters -p "$server_idle" --count 2 --counters Sytem.Runtime,Shop
for mode in silent flood noise drip trickle; do
	eval "server=\$server_$mode"
	case_of record_$mode 60 0 "$spoor" record -p "$server" --duration 1s -o record_$mode.nettrace
done
case_of stacks_flood 60 1 "$spoor" stacks -p "$server_flood"
case_of stacks_noise 60 1 "$spoor" stacks -p "$server_noise"
case_of stacks_drip 30 1 "$spoor" stacks -p "$server_drip"
case_of stacks_trickle 30 1 "$spoor" stacks -p "$server_trickle"
case_of counters_drip 40 1 "$spoor" counters -p "$server_drip" --count 2
case_of dump_silent 30 1 "$spoor" dump -p "$server_silent" -o "$scratch/x.core"
case_of env_trickle 30 1 "$spoor" env -p "$server_trickle"
case_of perfmap_silent 30 1 "$spoor" perfmap off -p "$server_silent"
case_of ps_all 30 0 "$spoor" ps
case_of doctor 60 0 "$spoor" doctor
await_cases
has err.trace_close '^hostile \([0-9]+\) was not traced: it closed its stream before it sent an event\.$'
has err.trace_silent 'was not traced: the end came before'
has err.trace_drip 'did not end the session within 5 s'
has err.trace_flood 'it sent more than a session can hold after its end'
has err.counters_silent 'is not counted: it has not answered for 5 s'
has err.counters_idle "has sent no counter of 'Sytem.Runtime'; did you mean 'System.Runtime'"
code_of "$spoor" report flood.nettrace
expect_code 0 "the trace of a process that floods"
for mode in silent flood noise drip trickle; do
	code_of "$spoor" report record_$mode.nettrace
	expect_code 0 "the recording of a process whose server is of kind $mode"
	has_no err 'before that is reported' # the file is whole
done
has err.dump_silent 'does not answer'
has_no requests.silent '^01' # no dump was asked for

# Nothing is sent to a process that is stopped, and it ends as well.
kill -STOP "$server_idle"
case_of trace_stopped 10 1 "$spoor" trace -p "$server_idle" --duration 1s -o stopped.nettrace
case_of counters_stopped 20 1 "$spoor" counters -p "$server_idle" --count 2
case_of dump_stopped 30 1 "$spoor" dump -p "$server_idle" -o "$scratch/x.core"
await_cases
has err.counters_stopped 'is stopped'
has err.dump_stopped 'is stopped \(by a signal or a debugger\)'
kill -CONT "$server_idle"

# Two signals, a moment apart, end whatever waits for a server: as a death by that signal, which the shell shows as 128 + N.
twice() {
	name=$1 signal=$2 number=$3 && shift 3
	start verb "$@" >"out.$name" 2>"err.$name" </dev/null
	sleep "${delay:-1}"
	kill -0 "$verb" 2>/dev/null || fail "$name ended before a signal came"
	kill -"$signal" "$verb"
	sleep 0.4
	kill -"$signal" "$verb" 2>/dev/null
	before=$(date +%s%N)
	wait "$verb" && got=0 || got=$?
	waited=$((($(date +%s%N) - before) / 1000000))
	[ $waited -lt 2500 ] || fail "$name ended $waited ms after a second SIG$signal"
	case $got in
	0 | 1 | $((128 + number))) ;;
	*) fail "$name: exit code $got after two SIG$signal" ;;
	esac
}
twice stacks INT 2 "$spoor" stacks --timeout 60s -p "$server_drip"
twice heap TERM 15 "$spoor" heap --no-file -p "$server_flood"
twice heap_drip HUP 1 "$spoor" heap --no-file -p "$server_drip"
twice trace INT 2 "$spoor" trace -p "$server_drip" -o twice.nettrace
twice counters TERM 15 "$spoor" counters -p "$server_trickle"
twice dump INT 2 "$spoor" dump -p "$server_silent" -o "$scratch/x.core"
# What a process that answers has sent is printed.
mkfifo feed
exec 9<>feed
"$(dirname "$spoor")/tests/escapes" <feed &
healthy=$!
started="$started $healthy"
until_true sh -c "ls $TMPDIR/dotnet-diagnostic-$healthy-*-socket" >/dev/null || fail "the program has no diagnostics port"
delay=4 twice list INT 2 "$spoor" counters -p "$healthy,$server_drip" --list
has out.list 'histogram'
has err.list 'not every runtime has ended its session'
exec 9>&-
code_of "$spoor" report twice.nettrace
expect_code 0 "a trace that two signals ended"
[ -z "$(find . -name '.spoor-*')" ] || fail "temporary files are left: $(find . -name '.spoor-*')"

# The guard has outlived them all, and stopped each session that was open: as many stops as sessions.
asked() {
	[ "$(grep -c '^0201$' "requests.drip")" -ge "$(grep -cE '^020[2-6]$' "requests.drip")" ]
}
until_true asked || fail "sessions are left open: $(tr '\n' ' ' <requests.drip)"

# Without a guard it says so, and the file has the notice.
code_of "$hostile" no-guard "$spoor" trace -p "$server_idle" --duration 300ms -o unguarded.nettrace
[ "$code" = 77 ] || {
	has err '\.NET processes may have to wait for spoor if it is stopped or hangs: .*Too many open files'
	code_of "$spoor" events unguarded.nettrace
	has out 'Spoor/Notice .*unguarded'
}

# With too few descriptors no session is opened that could not be stopped, and the sentence names the limit.
for limit in 12 14 16; do
	timeout -k 1 -s KILL 40 prlimit --nofile=$limit "$spoor" trace -p "$server_flood" --duration 300ms -o few.nettrace >out 2>err && code=0 || code=$?
	[ $code = 0 ] || [ $code = 1 ] || fail "trace with $limit descriptors: exit code $code"
	[ $code = 0 ] || has err "the limit of open files|Too many open files"
done
exit 0
