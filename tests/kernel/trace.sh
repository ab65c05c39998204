#!/bin/sh
# spoor trace of real programs: several in one file, a command from its first instruction on with all that it starts, ports, ends of every kind; and after each the
# programs are well and their sessions given back.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

trace_of() {
	code_of timeout 60 "$spoor" trace "$@"
}

# traced FILE NUMBER: so many runtimes have a session in the file.
traced() {
	"$spoor" report -v "$1" >report 2>report.err || fail "report of $1: $(cat report.err)"
	if [ "$2" = 1 ]; then
		has report '^opened in [^ ]+ \([0-9]+\): '
	else
		has report "^opened in $2 \.NET processes: "
	fi
}

# All 64 places of a program are free: as many sessions at once, of one provider that says nothing.
places_free() {
	pids=''
	for i in $(seq 64); do
		"$spoor" trace -q -p "$1" --providers Nothing-Says-This --rundown false --duration 3s -o "place$i.nettrace" 2>"place$i.err" &
		pids="$pids $!"
	done
	for pid in $pids; do
		wait "$pid" || fail "a place is not free: $(cat place*.err | sort | uniq -c)"
	done
	rm -f place*
}

begin one burn 600000
begin two burn 600000

# Two in one file; what was asked for is said, and nothing is lost.
trace_of -p "$one,$two" --duration 1s -o both.nettrace
expect_code 0 "two programs"
has err 'providers +Microsoft-Windows-DotNETRuntime +0x000000100003801d +informational +--profile \(the default\)'
has err '^next +spoor events both\.nettrace --summary$'
paste_next err
has step.out 'Microsoft-DotNETCore-SampleProfiler'
has err '^tracing +Managed \([0-9]+\), Managed \([0-9]+\)'
has err 'both\.nettrace .* events and [0-9,]+ of the rundown, of 2 processes in 1\.[0-9]+ s, nothing lost'
has err '^events +Microsoft-Windows-DotNETRuntime +[1-9][0-9,]*$'
has err '^ +Microsoft-DotNETCore-SampleProfiler +[1-9][0-9,]*$'
# The events of the end line are those of the providers below it: the rundown is counted apart.
tr -d , <err | awk '/both\.nettrace/ { for (i = 1; i <= NF; i++) if ($i == "events") total = $(i - 1) }
	/^events +Micro/ { sum += $3 } /^ +Microsoft.*[0-9]$/ && NF == 2 { sum += $2 }
	END { exit !(total && total - sum <= 16) }' || fail "the events of the end line: $(cat err)"
trace_of -p "$one" --providers Microsoft-Windows-DotNETRuntim,System.Net.Http,Nope --duration 300ms -o none.nettrace
expect_code 0 "providers that do not exist"
has err "^events +Microsoft-Windows-DotNETRuntim +0  no event source of this name sent any; did you mean 'Microsoft-Windows-DotNETRuntime'"
has err '^ +System\.Net\.Http +0$'
has err '^ +Nope +0  no event source of this name sent any$'
traced both.nettrace 2
has report 'nothing lost'
"$spoor" events both.nettrace --json --provider '*SampleProfiler' >stacks.json
has stacks.json '"stack":\[.*"function":"[A-Za-z.]*Burn'
has stacks.json '"level":4,"keywords":"0x0","bytes":4'

# Raw: a file for each, which is what the runtime sent.
trace_of -p "$one,$two" --raw --duration 300ms -o raw.nettrace
expect_code 0 "two programs raw"
for pid in $one $two; do
	[ "$(head -c 8 raw_$pid.nettrace)" = Nettrace ] && [ "$(tail -c 1 raw_$pid.nettrace | od -An -tu1 | tr -d ' ')" = 1 ] ||
		fail "raw_$pid.nettrace is no whole trace"
	"$spoor" events raw_$pid.nettrace --json --no-stacks | sed 's/.*"time":"\([^"]*\)".*/\1/' | sort -c ||
		fail "events of raw_$pid.nettrace are out of order"
	"$spoor" events raw_$pid.nettrace --json --provider '*SampleProfiler' >stacks.json
	has stacks.json '"stack":\[.*"function":"[A-Za-z.]*Burn'
done
trace_of -p $one --raw --duration 300ms -o - --rundown false
[ "$(head -c 8 out)" = Nettrace ] || fail "no trace on standard output"

# Lines: who, what, with the fields by name; and only the events with these numbers.
# A busy machine collects late: until the event is there.
until_event="--duration 40s --stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name"
# shellcheck disable=SC2086 # its words
trace_of -p $one --providers Microsoft-Windows-DotNETRuntime:1:4 --rundown false --print $until_event GC/HeapStats
expect_code 0 "printed"
has out "^[0-9:.]{15}  $one/[0-9]+  Microsoft-Windows-DotNETRuntime/GC/Start  Count=[0-9]+ Depth=[0-9] Reason="
has out 'GC/HeapStats  GenerationSize0='
[ ! -e Managed_*.nettrace ] || fail "a file that nobody asked for"
# shellcheck disable=SC2086
trace_of -p $one --providers Microsoft-Windows-DotNETRuntime:1:4 --event-ids Microsoft-Windows-DotNETRuntime:1 --rundown false --print $until_event GC/Start
expect_code 0 "event ids"
has out '/GC/Start '
has_no out 'HeapStats|GC/Stop'

# A reader that leaves ends it, and that is no failure.
"$spoor" trace -q -p $one --rundown false --print 2>err | head -n 3 >out
[ "$(wc -l <out)" = 3 ] && [ ! -s err ] || fail "a reader that leaves: $(cat err)"

# An event ends it, long before the time is up.
before=$(date +%s)
trace_of -p $one --clrevents gc --stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name GC/Start \
	--stopping-event-payload-filter ClrInstanceID:0 --duration 50s -o stopped.nettrace
expect_code 0 "a stopping event"
[ $(($(date +%s) - before)) -lt 20 ] || fail "the stopping event did not stop it"
has_no err 'did not occur'
trace_of -p $one --clrevents gc --stopping-event-provider-name Nothing-Says-This --duration 300ms -o unstopped.nettrace
expect_code 0 "a stopping event that does not come"
has err '^the stopping event did not occur$'

# From the first instruction on, with all that the command starts; its output goes through, its code is ours.
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

# Its runtimes' very first events: the first method that is compiled is the program's own beginning.
trace_of --providers Microsoft-Windows-DotNETRuntime:10:5 --rundown false --print -- dotnet "$app" burn 100
has out 'MethodNamespace="System.StartupHookProvider"|MethodName="<Main>\$"|MethodName="Main"'

# The command outlives its trace, and what it starts after that is not left waiting.
cat >late.sh <<SH
dotnet '$app' burn 1500
dotnet '$app' burn 100
exit 5
SH
before=$(date +%s)
trace_of --duration 300ms -o late.nettrace -- sh late.sh
expect_code 5 "a command that outlives its trace: $(cat err)"
[ "$(grep -c rounds out)" = 2 ] || fail "what came after the trace did not run"
[ $(($(date +%s) - before)) -lt 15 ] || fail "what came after the trace had to wait"
traced late.nettrace 1

# Killed while the command runs: what runs, runs on, and what it starts later does not wait for us for ever.
cat >orphan.sh <<SH
dotnet '$app' burn 1200
dotnet '$app' burn 100
SH
start killed "$spoor" trace -q -o orphan.nettrace -- sh orphan.sh >out
until_true grep -q ready out || fail "the command does not start"
kill -9 $killed
wait $killed
for _ in $(seq 150); do
	[ "$(grep -c rounds out)" != 2 ] || break
	sleep 0.1
done
[ "$(grep -c rounds out)" = 2 ] || fail "a command whose trace was killed does not come to its end: $(cat out)"
for _ in $(seq 150); do
	ls "${TMPDIR:-/tmp}"/spoor-trace-* >/dev/null 2>&1 || break
	sleep 0.1
done
ls "${TMPDIR:-/tmp}"/spoor-trace-* 2>/dev/null && fail "its socket stays"

# A port of ours that a program was told of, and the program's own.
start porter "$spoor" trace -q --diagnostic-port "$scratch/port.socket" -o ported.nettrace --duration 500ms
until_true test -S "$scratch/port.socket" || fail "no port"
[ "$(stat -c %a "$scratch/port.socket")" = 600 ] || fail "the port is open to others"
DOTNET_DiagnosticPorts=$scratch/port.socket dotnet "$app" burn 1500 >out || fail "the program that was told of a port"
wait $porter || fail "the trace of a port"
traced ported.nettrace 1
[ ! -e "$scratch/port.socket" ] || fail "the port is still there"
# A process of the same number may have left its own behind; the newest is this one's.
own=$(ls -t "${TMPDIR:-/tmp}"/dotnet-diagnostic-$one-*-socket | head -n 1)
trace_of --dport "$own,connect" --duration 300ms -o connected.nettrace
expect_code 0 "connect: $(cat err)"
traced connected.nettrace 1
trace_of --diagnostic-port "$scratch/nobody,connect" -o none.nettrace
expect_code 1 "nobody listens"
has err "cannot connect to '.*/nobody': No such file"

# One that a signal has stopped costs only itself, and Ctrl-C is enough.
kill -STOP $two
until_true grep -q '^State:.T' /proc/$two/status
start tracer "$spoor" trace -p "$one,$two" -o half.nettrace 2>err
sleep 1
# It pushes nobody off a CPU (SCHED_BATCH).
[ ! -r /proc/$tracer/sched ] || [ "$(sed -n 's/^policy *: *//p' /proc/$tracer/sched)" = 3 ] || fail "its policy is not 3"
kill -INT $tracer
before=$(date +%s)
wait $tracer || fail "with a stopped program: $(cat err)"
[ $(($(date +%s) - before)) -lt 8 ] || fail "a stopped program held us up"
has err "Managed \($two\) was not traced: "
traced half.nettrace 1
kill -CONT $two

# A target that is killed in the middle: what came before stands.
begin victim burn 600000
start tracer "$spoor" trace -p "$one,$victim" --duration 2s -o killed.nettrace 2>err
sleep 1
kill -9 $victim
wait $tracer || fail "with a killed target: $(cat err)"
traced killed.nettrace 2

# A disk that is full: a sentence, and the sessions are given back.
trace_of -p $one --duration 2s -o /dev/full
expect_code 1 "a full disk"
has err "cannot write '/dev/full': No space left"

# Killed three times, stopped by a signal once: the guard gives the sessions back, the programs run on, the file is whole up to the kill.
for i in 1 2 3; do
	start killed "$spoor" trace -q -p "$one,$two" --providers Nothing-Says-This -o k.nettrace
	until_true sh -c "'$spoor' report -v k.nettrace | grep -q '^opened in 2 '" || fail "no two sessions: $(cat err)"
	kill -9 $killed
	wait $killed
	cp k.nettrace k.last
	rm k.nettrace
done
traced k.last 2
start paused "$spoor" trace -q -p $one -o p.nettrace
sleep 0.5
kill -STOP $paused
sleep 3
kill -CONT $paused
sleep 1
kill -INT $paused
wait $paused || fail "one that was stopped for a while"
"$spoor" report p.nettrace >report
has report 'stood still'
places_free $one

# Ctrl-Z: the sessions are given back before it stops, and opened again when it goes on; the gap is said, in the file too.
probe=$(dirname "$spoor")/tests/probe
places=$("$probe" slots $one 2>err) || fail "the places before Ctrl-Z: $(cat err)"
[ "$places" = 64 ] || fail "$places places before Ctrl-Z"
# timeout(1) makes a process group with a parent elsewhere; a group without one is not stopped.
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
	[ "$("$probe" slots "$each" 2>probe.err)" = 64 ] || fail "stopped by Ctrl-Z it has left a session in $each: $(cat probe.err)"
	"$probe" ask "$each" >/dev/null 2>probe.err || fail "stopped by Ctrl-Z it holds up $each"
done
kill -CONT "$suspended"
goes_on() {
	tail -n "+$((before + 1))" lines | grep -q "  $1/.*GC/Start"
}
for each in $one $two; do
	until_true goes_on "$each" || fail "no events of $each after it went on"
done
kill -INT "$suspended"
wait $limiter || fail "one that was stopped by Ctrl-Z: $(cat err)"
has err 'z\.nettrace .* events and [0-9,]+ of the rundown, of 2 processes in [0-9.]+ s \(stopped for [0-9.]+ m?s\), nothing lost'
traced z.nettrace 2
has report '^spoor was stopped for [0-9.]+ m?s \(Ctrl-Z, SIGTSTP\): '
[ "$("$probe" slots $one 2>err)" = 64 ] || fail "a session stays after Ctrl-Z"
# With a command, which the same Ctrl-Z stops: both stand still, both go on, and its code is ours.
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
grep -q rounds zc.out || fail "the command did not go on"
"$spoor" report zc.nettrace >report
has report '^spoor was stopped for '
# The runtime's own bytes are one session each: they end there.
start limiter timeout 100 "$spoor" trace -q -p $one --raw -o rawz.nettrace 2>err
until_true test -s rawz.nettrace || fail "no bytes"
suspended=$(cut -d ' ' -f 1 /proc/$limiter/task/$limiter/children)
started="$started $suspended"
kill -TSTP "$suspended"
until_true grep -q '^State:.T' "/proc/$suspended/status" || fail "Ctrl-Z does not stop it with --raw"
[ "$("$probe" slots $one 2>err)" = 64 ] || fail "stopped by Ctrl-Z with --raw it has left a session"
kill -CONT "$suspended"
wait $limiter || fail "--raw that was stopped by Ctrl-Z: $(cat err)"
[ "$(tail -c 1 rawz.nettrace | od -An -tu1 | tr -d ' ')" = 1 ] || fail "rawz.nettrace is no whole trace"

for each in $one $two; do
	kill -0 $each || fail "a program that was traced is gone"
done

# In a pid namespace of its own: the ids are those of here.
if is_root && unshare --pid --mount --fork true 2>/dev/null; then
	: >ready.inside
	start outer unshare --pid --mount --fork --kill-child --mount-proc sh -c "mount -t tmpfs none /tmp; unset TMPDIR; dotnet '$app' burn 600001" >ready.inside
	until_true grep -q ready ready.inside || fail "the program in a namespace does not start"
	"$spoor" ps -n Managed --json | tr '{' '\n' | grep 'burn 600001' >inside
	pid=$(grep -oE '^"pid":[0-9]+' inside | cut -d: -f2)
	# shellcheck disable=SC2086
	trace_of -p "$pid" --providers Microsoft-Windows-DotNETRuntime:1:4 --rundown false --print $until_event GC/Start
	expect_code 0 "in a namespace: $(cat err)"
	tid=$(grep -m 1 -oE "  $pid/[0-9]+  " out | tr -dc '0-9/' | cut -d/ -f2)
	nsenter --target "$pid" --pid --mount --root "$spoor" trace --duration 300ms -o /tmp/within.nettrace 2>err || fail "within: $(cat err)"
	has err 'tracing +Managed \([0-9]+\)$'
	[ -n "$tid" ] && [ -d "/proc/$pid/task/$tid" ] || fail "thread '$tid' of process $pid is none of here"
else
	echo "no namespaces of our own: inner ids are not tried"
fi
exit 0
