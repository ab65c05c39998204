#!/bin/sh
# spoor trace whose target is stopped or killed, whose disk is full, or that is itself killed, stopped or suspended (Ctrl-Z). After each the programs run on
# and have no session left.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

begin one paced 600000
begin two paced 600000

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
begin victim paced 600000
record_opened 2 killed.nettrace trace -p "$one,$victim"
sockets() {
	ls -l "/proc/$recorder/fd" | grep -c 'socket:'
}
sockets_before=$(sockets)
fewer_sockets() {
	[ "$(sockets)" -lt "$sockets_before" ]
}
kill -9 $victim
until_true fewer_sockets || fail "spoor does not see that a target was killed"
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
until_true no_session $one || fail "the guard does not end the session of a stopped spoor"
kill -CONT $recorder
noticed() {
	"$spoor" report p.nettrace >report && grep -qE '^spoor was stopped for [0-9.]+ s: its sessions in 1 .NET process were ended after 2 s, so that it was not held up, and are opened again' report
}
until_true noticed || fail "the file has no notice of the session that the guard ended"
kill -INT $recorder
wait $recorder || fail "a trace that was stopped and continued: $(cat p.nettrace.err)"
noticed || fail "the notice is gone"
until_true no_session $one || fail "a session is left: $(sessions $one)"

# Ctrl-Z: spoor ends its sessions before it stops, and opens them again when it continues. The gap is reported, and is in the file.
probe=$(dirname "$spoor")/tests/probe
# timeout(1) makes a process group whose parent is in another group. The kernel does not stop other groups.
start limiter timeout 100 "$spoor" trace -p "$one,$two" --providers Microsoft-Windows-DotNETRuntime:1:4 --print -o z.nettrace >lines 2>err
until_true grep -q "  $two/.*GC/Start" lines || fail "no events of the second program"
until_true grep -q "  $one/.*GC/Start" lines || fail "no events of the first program"
for each in $one $two; do
	[ "$(sessions "$each")" = 1 ] || fail "$(sessions "$each") sessions in $each"
done
suspended=$(cut -d ' ' -f 1 /proc/$limiter/task/$limiter/children)
started="$started $suspended"
kill -TSTP "$suspended"
until_true grep -q '^State:.T' "/proc/$suspended/status" || fail "Ctrl-Z does not stop it"
before=$(wc -l <lines)
# spoor itself has ended them: after two seconds the guard would.
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
until_true no_session $one || fail "a session stays after Ctrl-Z"
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
exit 0
