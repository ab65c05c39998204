#!/bin/sh
# spoor trace of real programs: several in one file, a command from its first instruction with its children, ports, and ends of every kind. After each the
# programs run on and have no session left.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

trace_of() {
	code_of timeout 250 "$spoor" trace "$@"
}

# traced FILE NUMBER: the file has sessions of so many runtimes.
traced() {
	"$spoor" report -v "$1" >report 2>report.err || fail "report of $1: $(cat report.err)"
	if [ "$2" = 1 ]; then
		has report '^opened in [^ ]+ \([0-9]+\): '
	else
		has report "^opened in $2 \.NET processes: "
	fi
}

# burns FILE: an event has a stack with Hot.Burn.
burns() {
	[ "$(jq -s 'any(.[]; any(.stack[]?; .function | test("Burn")))' "$1")" = true ] || fail "no stack with Burn in $1"
}

begin one burn 600000
begin two burn 600000

# Two programs in one file. The providers are printed, and nothing is lost.
trace_of -p "$one,$two" --duration 4s -o both.nettrace
expect_code 0 "two programs"
has err 'providers +Microsoft-Windows-DotNETRuntime +0x000000100003801d +informational +--profile \(the default\)'
has err '^next +spoor events both\.nettrace --summary$'
paste_next err
has step.out 'Microsoft-DotNETCore-SampleProfiler'
has err '^tracing +Managed \([0-9]+\), Managed \([0-9]+\)'
has err 'both\.nettrace .* events and [0-9,]+ of the rundown, of 2 processes in [0-9.]+ m?s, nothing lost'
has err '^events +Microsoft-Windows-DotNETRuntime +[1-9][0-9,]*$'
has err '^ +Microsoft-DotNETCore-SampleProfiler +[1-9][0-9,]*$'
# The number of events is the sum of the lines of the providers; the rundown is counted separately.
tr -d , <err | awk '/both\.nettrace/ { for (i = 1; i <= NF; i++) if ($i == "events") total = $(i - 1) }
	/^events +Micro/ { sum += $3 } /^ +Microsoft.*[0-9]$/ && NF == 2 { sum += $2 }
	END { exit !(total && total - sum <= 16) }' || fail "the events of the end line: $(cat err)"
trace_of -p "$one" --providers Microsoft-Windows-DotNETRuntim,System.Net.Http,Nope --duration 2s -o none.nettrace
expect_code 0 "providers that do not exist"
has err "^events +Microsoft-Windows-DotNETRuntim +0  no event source of this name sent any; did you mean 'Microsoft-Windows-DotNETRuntime'"
has err '^ +System\.Net\.Http +0$'
has err '^ +Nope +0  no event source of this name sent any$'
traced both.nettrace 2
has report 'nothing lost'
"$spoor" events both.nettrace --json --provider '*SampleProfiler' >stacks.json
burns stacks.json
[ "$(jq -s 'any(.[]; .level == 4 and .keywords == "0x0" and .bytes == 4)' stacks.json)" = true ] || fail "no event with level, keywords and size"

# --raw: a file for each process, with the bytes that the runtime sent.
trace_of -p "$one,$two" --raw --duration 3s -o raw.nettrace
expect_code 0 "two programs raw"
for pid in $one $two; do
	[ "$(head -c 8 raw_$pid.nettrace)" = Nettrace ] && [ "$(tail -c 1 raw_$pid.nettrace | od -An -tu1 | tr -d ' ')" = 1 ] ||
		fail "raw_$pid.nettrace is no whole trace"
	"$spoor" events raw_$pid.nettrace --json --no-stacks | jq -r .time >times && [ -s times ] && sort -c times ||
		fail "events of raw_$pid.nettrace are out of order"
	"$spoor" events raw_$pid.nettrace --json --provider '*SampleProfiler' >stacks.json
	burns stacks.json
done
trace_of -p $one --raw --duration 3s -o - --rundown false
[ "$(head -c 8 out)" = Nettrace ] || fail "no trace on standard output"

# --print: a line for each event with process, name and fields, and only the events with the ids of --event-ids. The trace ends with the event.
until_event="--duration 200s --stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name"
# shellcheck disable=SC2086 # its words
trace_of -p $one --providers Microsoft-Windows-DotNETRuntime:1:4 --rundown false --print $until_event GC/HeapStats
expect_code 0 "printed"
has out "^[0-9:.]{15}  $one/[0-9]+  Microsoft-Windows-DotNETRuntime/GC/Start  Count=[0-9]+ Depth=[0-9] Reason="
has out 'GC/HeapStats  GenerationSize0='
[ ! -e Managed_*.nettrace ] || fail "there is a file without -o"
# shellcheck disable=SC2086
trace_of -p $one --providers Microsoft-Windows-DotNETRuntime:1:4 --event-ids Microsoft-Windows-DotNETRuntime:1 --rundown false --print $until_event GC/Start
expect_code 0 "event ids"
has out '/GC/Start '
has_no out 'HeapStats|GC/Stop'

# A reader that closes the pipe ends the trace, without a failure.
"$spoor" trace -q -p $one --rundown false --print 2>err | head -n 3 >out
[ "$(wc -l <out)" = 3 ] && [ ! -s err ] || fail "a reader that closes the pipe: $(cat err)"

# An event ends the trace before its duration.
before=$(date +%s)
trace_of -p $one --clrevents gc --stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name GC/Start \
	--stopping-event-payload-filter ClrInstanceID:0 --duration 200s -o stopped.nettrace
expect_code 0 "a stopping event"
[ $(($(date +%s) - before)) -lt 150 ] || fail "the stopping event did not stop it"
has_no err 'did not occur'
trace_of -p $one --clrevents gc --stopping-event-provider-name Nothing-Says-This --duration 1s -o unstopped.nettrace
expect_code 0 "a stopping event that does not come"
has err '^the stopping event did not occur$'

# A command from its first instruction, with its children. Its output is not changed, and spoor returns its exit code.
cat >command.sh <<SH
echo begins
dotnet '$app' burn 300
sh -c "dotnet '$app' burn 300"
exit 7
SH
trace_of -o command.nettrace -- sh command.sh
expect_code 7 "a command: $(cat err)"
has out '^begins$'
[ "$(grep -c rounds out)" = 2 ] || fail "the command's programs did not run to their ends"
traced command.nettrace 2
ls "${TMPDIR:-/tmp}"/spoor-trace-* 2>/dev/null && fail "its socket is still there"

# The first events of a runtime: they have the program's first method.
trace_of --providers Microsoft-Windows-DotNETRuntime:10:5 --rundown false --print -- dotnet "$app" burn 100
has out 'MethodNamespace="System.StartupHookProvider"|MethodName="<Main>\$"|MethodName="Main"'

# The command continues after the trace, and programs that it starts later do not wait for spoor.
cat >late.sh <<SH
dotnet '$app' burn 1500
dotnet '$app' burn 100
exit 5
SH
before=$(date +%s)
trace_of --duration 1s -o late.nettrace -- sh late.sh
expect_code 5 "a command that outlives its trace: $(cat err)"
[ "$(grep -c rounds out)" = 2 ] || fail "the second program did not run"
[ $(($(date +%s) - before)) -lt 150 ] || fail "the second program had to wait"
traced late.nettrace 1

# Killed while the command runs: its program continues, and programs that it starts later do not wait for spoor.
cat >orphan.sh <<SH
dotnet '$app' burn 1200
dotnet '$app' burn 100
SH
start killed "$spoor" trace -q -o orphan.nettrace -- sh orphan.sh >out
until_true grep -q ready out || fail "the command does not start"
kill -9 $killed
wait $killed
two_ran() { [ "$(grep -c rounds out)" = 2 ]; }
until_true two_ran || fail "a command whose trace was killed does not come to its end: $(cat out)"
no_socket() { ! ls "${TMPDIR:-/tmp}"/spoor-trace-*; }
until_true no_socket || fail "its socket is left"

# A listen port that the environment of a program names, and the port of a program.
start porter "$spoor" trace -q --diagnostic-port "$scratch/port.socket" -o ported.nettrace --duration 2s
until_true test -S "$scratch/port.socket" || fail "no port"
[ "$(stat -c %a "$scratch/port.socket")" = 600 ] || fail "the port is open to others"
DOTNET_DiagnosticPorts=$scratch/port.socket dotnet "$app" burn 3000 >out || fail "the program with a listen port"
wait $porter || fail "the trace of a port"
traced ported.nettrace 1
[ ! -e "$scratch/port.socket" ] || fail "the port is still there"
# An earlier process of this id may have left its socket; the newest is the one of this process.
own=$(ls -t "${TMPDIR:-/tmp}"/dotnet-diagnostic-$one-*-socket | head -n 1)
trace_of --dport "$own,connect" --duration 2s -o connected.nettrace
expect_code 0 "connect: $(cat err)"
traced connected.nettrace 1
trace_of --diagnostic-port "$scratch/nobody,connect" -o none.nettrace
expect_code 1 "nobody listens"
has err "cannot connect to '.*/nobody': No such file"

# A stopped program is not traced; the other one is, and Ctrl-C ends the trace.
kill -STOP $two
until_true grep -q '^State:.T' /proc/$two/status || fail "the program does not stop"
record_opened 1 half.nettrace trace -p "$one,$two"
# Its scheduling policy is SCHED_BATCH.
[ ! -r /proc/$recorder/sched ] || [ "$(sed -n 's/^policy *: *//p' /proc/$recorder/sched)" = 3 ] || fail "its policy is not 3"
kill -INT $recorder
before=$(date +%s)
wait $recorder || fail "with a stopped program: $(cat half.nettrace.err)"
[ $(($(date +%s) - before)) -lt 60 ] || fail "spoor waits for a stopped program"
has half.nettrace.err "Managed \($two\) was not traced: "
traced half.nettrace 1
kill -CONT $two

# A target that is killed during the trace: its events from before are in the file.
begin victim burn 600000
record_opened 2 killed.nettrace trace -p "$one,$victim"
kill -9 $victim
sleep 1
kill -INT $recorder
wait $recorder || fail "with a killed target: $(cat killed.nettrace.err)"
traced killed.nettrace 2

# A full disk: a message, and no session is left.
trace_of -p $one --duration 100s -o /dev/full
expect_code 1 "a full disk"
has err "cannot write '/dev/full': No space left"

# Killed three times, stopped once: the guard ends the sessions, the programs run on, and the file can be read up to its last flush.
for i in 1 2 3; do
	record_opened 2 k.nettrace trace -q -p "$one,$two" --providers Nothing-Says-This
	kill -9 $recorder
	wait $recorder
	cp k.nettrace k.last
	rm k.nettrace
done
traced k.last 2
record_opened 1 p.nettrace trace -q -p $one
kill -STOP $recorder
until_true all_slots_free $one || fail "the guard does not end the session of a stopped spoor: $(free_slots $one) slots"
kill -CONT $recorder
sleep 1
kill -INT $recorder
wait $recorder || fail "a trace that was stopped and continued: $(cat p.nettrace.err)"
"$spoor" report p.nettrace >report
has report 'stood still'
until_true all_slots_free $one || fail "a session is left: $(free_slots $one) slots"

# Ctrl-Z: spoor ends its sessions before it stops, and opens them again when it continues. The gap is reported, and is in the file.
probe=$(dirname "$spoor")/tests/probe
places=$("$probe" slots $one 2>err) || fail "the places before Ctrl-Z: $(cat err)"
[ "$places" = 64 ] || fail "$places places before Ctrl-Z"
# timeout(1) makes a process group whose parent is in another group. The kernel does not stop other groups.
start limiter timeout 100 "$spoor" trace -p "$one,$two" --providers Microsoft-Windows-DotNETRuntime:1:4 --print -o z.nettrace >lines 2>err
until_true grep -q "  $two/.*GC/Start" lines || fail "no events of the second program"
until_true grep -q "  $one/.*GC/Start" lines || fail "no events of the first program"
for each in $one $two; do
	[ "$("$probe" slots "$each" 2>probe.err)" = 63 ] || fail "no session in $each: $(cat probe.err)"
done
suspended=$(cut -d ' ' -f 1 /proc/$limiter/task/$limiter/children)
started="$started $suspended"
kill -TSTP "$suspended"
until_true grep -q '^State:.T' "/proc/$suspended/status" || fail "Ctrl-Z does not stop it"
before=$(wc -l <lines)
for each in $one $two; do
	[ "$("$probe" slots "$each" 2>probe.err)" = 64 ] || fail "after Ctrl-Z there is a session in $each: $(cat probe.err)"
	"$probe" ask "$each" >/dev/null 2>probe.err || fail "after Ctrl-Z $each does not answer"
done
kill -CONT "$suspended"
goes_on() {
	tail -n "+$((before + 1))" lines | grep -q "  $1/.*GC/Start"
}
for each in $one $two; do
	until_true goes_on "$each" || fail "no events of $each after it continued"
done
kill -INT "$suspended"
wait $limiter || fail "one that was stopped by Ctrl-Z: $(cat err)"
has err 'z\.nettrace .* events and [0-9,]+ of the rundown, of 2 processes in [0-9.]+ m?s \(stopped for [0-9.]+ m?s\), nothing lost'
traced z.nettrace 2
has report '^spoor was stopped for [0-9.]+ m?s \(Ctrl-Z, SIGTSTP\): '
[ "$("$probe" slots $one 2>err)" = 64 ] || fail "a session stays after Ctrl-Z"
# With a command, which the same Ctrl-Z stops: both stop, both continue, and spoor returns its exit code.
start limiter timeout 100 "$spoor" trace -q -o zc.nettrace -- sh -c "dotnet '$app' burn 4000; exit 6" >zc.out 2>err
until_true grep -q ready zc.out || fail "the command does not start"
suspended=$(cut -d ' ' -f 1 /proc/$limiter/task/$limiter/children)
shell=$(pgrep -P "$suspended" -x sh)
program=$(pgrep -P "$shell")
started="$started $suspended $program"
kill -TSTP "$shell" "$program" "$suspended"
for each in $suspended $shell $program; do
	until_true grep -q '^State:.T' "/proc/$each/status" || fail "Ctrl-Z with a command does not stop $each"
done
kill -CONT "$suspended" "$shell" "$program"
wait $limiter
[ $? = 6 ] || fail "a command after Ctrl-Z: $(cat err)"
grep -q rounds zc.out || fail "the command did not continue"
"$spoor" report zc.nettrace >report
has report '^spoor was stopped for '
# With --raw Ctrl-Z ends the trace, because the bytes of two sessions cannot be in one file.
start limiter timeout 100 "$spoor" trace -q -p $one --raw -o rawz.nettrace 2>err
until_true test -s rawz.nettrace || fail "no bytes"
suspended=$(cut -d ' ' -f 1 /proc/$limiter/task/$limiter/children)
started="$started $suspended"
kill -TSTP "$suspended"
until_true grep -q '^State:.T' "/proc/$suspended/status" || fail "Ctrl-Z does not stop it with --raw"
[ "$("$probe" slots $one 2>err)" = 64 ] || fail "after Ctrl-Z with --raw there is a session"
kill -CONT "$suspended"
wait $limiter || fail "--raw that was stopped by Ctrl-Z: $(cat err)"
[ "$(tail -c 1 rawz.nettrace | od -An -tu1 | tr -d ' ')" = 1 ] || fail "rawz.nettrace is no whole trace"

for each in $one $two; do
	kill -0 $each || fail "a program that was traced is gone"
done

# In a pid namespace: the ids are those of this namespace.
if is_root && unshare --pid --mount --fork true 2>/dev/null; then
	: >ready.inside
	start outer unshare --pid --mount --fork --kill-child --mount-proc sh -c "mount -t tmpfs none /tmp; unset TMPDIR; dotnet '$app' burn 600001" >ready.inside
	until_true grep -q ready ready.inside || fail "the program in a namespace does not start"
	"$spoor" ps -n Managed --json >inside.json || fail "ps"
	pid=$(value inside.json '.processes[] | select(.command_line | test("burn 600001")) | .pid')
	# shellcheck disable=SC2086
	trace_of -p "$pid" --providers Microsoft-Windows-DotNETRuntime:1:4 --rundown false --print $until_event GC/Start
	expect_code 0 "in a namespace: $(cat err)"
	tid=$(grep -m 1 -oE "  $pid/[0-9]+  " out | tr -dc '0-9/' | cut -d/ -f2)
	nsenter --target "$pid" --pid --mount --root "$spoor" trace --duration 2s -o /tmp/within.nettrace 2>err || fail "within: $(cat err)"
	has err 'tracing +Managed \([0-9]+\)$'
	[ -n "$tid" ] && [ -d "/proc/$pid/task/$tid" ] || fail "there is no thread '$tid' of process $pid in this namespace"
else
	echo "no namespaces can be made here: inner ids were not tested"
fi
exit 0
