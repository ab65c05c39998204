#!/bin/sh
# Diagnostics servers that do not answer, or send without end: every verb ends, a second signal ends it within a second, and no session or file is left.
# The servers are processes of this test (hostile.c).
. "$(dirname "$(realpath "$0")")/../prelude"
hostile=$(dirname "$spoor")/tests/hostile
export TMPDIR=$scratch

for mode in silent idle close flood noise drip trickle; do
	start "server_$mode" "$hostile" runtime $mode >"requests.$mode"
	until_true test -s "requests.$mode" || fail "no server $mode"
done

# case_of NAME CODE command...: runs the command in the background. It must end with CODE within 200 seconds.
cases=''
case_of() {
	name=$1 want=$2 && shift 2
	(
		timeout -k 1 -s KILL 200 "$@" >"out.$name" 2>"err.$name" </dev/null && got=0 || got=$?
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
		fail "a verb ended with another exit code"
	}
	rm -f case.*
}

# A verb ends after its duration, with any server. The end of an open session has its own time limit.
case_of trace_silent 1 "$spoor" trace -p "$server_silent" --duration 1s -o silent.nettrace
case_of trace_trickle 1 "$spoor" trace -p "$server_trickle" --duration 1s -o trickle.nettrace
case_of trace_close 1 "$spoor" trace -q -p "$server_close" --duration 1s -o close.nettrace
case_of trace_flood 0 "$spoor" trace -p "$server_flood" --duration 1s -o flood.nettrace
case_of trace_drip 0 "$spoor" trace -p "$server_drip" --duration 1s -o drip.nettrace
case_of counters_silent 1 "$spoor" counters -p "$server_silent" --count 2
case_of counters_idle 1 "$spoor" counters -p "$server_idle" --count 2 --counters Sytem.Runtime,Shop
for mode in silent flood noise drip trickle; do
	eval "server=\$server_$mode"
	case_of record_$mode 0 "$spoor" record -p "$server" --duration 1s -o record_$mode.nettrace
done
case_of stacks_flood 1 "$spoor" stacks -p "$server_flood"
case_of stacks_noise 1 "$spoor" stacks -p "$server_noise"
case_of stacks_drip 1 "$spoor" stacks -p "$server_drip"
case_of stacks_trickle 1 "$spoor" stacks -p "$server_trickle"
case_of counters_drip 1 "$spoor" counters -p "$server_drip" --count 2
case_of dump_silent 1 "$spoor" dump -p "$server_silent" -o "$scratch/x.core"
case_of env_trickle 1 "$spoor" env -p "$server_trickle"
case_of perfmap_silent 1 "$spoor" perfmap off -p "$server_silent"
case_of ps_all 0 "$spoor" ps
case_of doctor 0 "$spoor" doctor
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
	has_no err 'before that is reported' # the file is complete
done
has err.dump_silent 'does not answer'
has_no requests.silent '^01' # no dump was asked for

# spoor sends nothing to a process that is stopped, and ends.
kill -STOP "$server_idle"
case_of trace_stopped 1 "$spoor" trace -p "$server_idle" --duration 1s -o stopped.nettrace
case_of counters_stopped 1 "$spoor" counters -p "$server_idle" --count 2
case_of dump_stopped 1 "$spoor" dump -p "$server_idle" -o "$scratch/x.core"
await_cases
has err.counters_stopped 'is stopped'
has err.dump_stopped 'is stopped \(by a signal or a debugger\)'
kill -CONT "$server_idle"

# Two signals, 400 ms apart, end any verb that waits for a server. The verb may die of that signal, which the shell shows as 128 + N. One try of five has
# to be quick, because the machine may be busy.
twice() {
	name=$1 signal=$2 number=$3 && shift 3
	for try in 1 2 3 4 5; do
		start verb "$@" >"out.$name" 2>"err.$name" </dev/null
		sleep "${delay:-1}"
		! ended_process "$verb" || fail "$name ended before a signal came"
		kill -"$signal" "$verb"
		sleep 0.4
		kill -"$signal" "$verb" 2>/dev/null
		before=$(now_ms)
		wait "$verb" && got=0 || got=$?
		waited=$(($(now_ms) - before))
		case $got in
		0 | 1 | $((128 + number))) ;;
		*) fail "$name: exit code $got after two SIG$signal" ;;
		esac
		[ $waited -ge 2500 ] || return 0
		echo "$name ended $waited ms after a second SIG$signal in try $try"
	done
	fail "$name does not end within 2.5 s after a second SIG$signal"
}
twice stacks INT 2 "$spoor" stacks --timeout 60s -p "$server_drip"
twice heap TERM 15 "$spoor" heap --no-file -p "$server_flood"
twice heap_drip HUP 1 "$spoor" heap --no-file -p "$server_drip"
twice trace INT 2 "$spoor" trace -p "$server_drip" -o twice.nettrace
twice counters TERM 15 "$spoor" counters -p "$server_trickle"
twice dump INT 2 "$spoor" dump -p "$server_silent" -o "$scratch/x.core"
# The verb prints what a process that answers has sent.
mkfifo feed
exec 9<>feed
"$(dirname "$spoor")/tests/escapes" <feed &
healthy=$!
started="$started $healthy"
until_true sh -c "ls $TMPDIR/dotnet-diagnostic-$healthy-*-socket" >/dev/null || fail "the program has no diagnostics port"
for delay in 4 4 4 4 4; do # a busy machine may need longer for the answer
	twice list INT 2 "$spoor" counters -p "$healthy,$server_drip" --list
	! grep -q histogram out.list || break
done
has out.list 'histogram'
has err.list 'not every runtime has ended its session'
exec 9>&-
code_of "$spoor" report twice.nettrace
expect_code 0 "a trace that two signals ended"
[ -z "$(find . -name '.spoor-*')" ] || fail "temporary files are left: $(find . -name '.spoor-*')"

# The guards live on until they have stopped each open session: there are as many stops as sessions.
asked() {
	[ "$(grep -c '^0201$' "requests.drip")" -ge "$(grep -cE '^020[2-6]$' "requests.drip")" ]
}
until_true asked || fail "sessions are left open: $(tr '\n' ' ' <requests.drip)"

# Without a guard there is a message, and a notice in the file.
code_of "$hostile" no-guard "$spoor" trace -p "$server_idle" --duration 1s -o unguarded.nettrace
[ "$code" = 77 ] || {
	has err '\.NET processes may have to wait for spoor if it is stopped or hangs: .*Too many open files'
	code_of "$spoor" events unguarded.nettrace
	has out 'Spoor/Notice .*unguarded'
}

# With too few descriptors no session is opened that could not be stopped, and the message names the limit.
for limit in 12 14 16; do
	timeout -k 1 -s KILL 200 prlimit --nofile=$limit "$spoor" trace -p "$server_flood" --duration 1s -o few.nettrace >out 2>err && code=0 || code=$?
	[ $code = 0 ] || [ $code = 1 ] || fail "trace with $limit descriptors: exit code $code"
	[ $code = 0 ] || has err "the limit of open files|Too many open files"
done
exit 0
