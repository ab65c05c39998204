#!/bin/sh
# spoor stacks of a real process: threads that stand where we know, grouped, named, with what they wait for and who holds the lock; rounds; no session left
# behind; a process that is stopped, gone, or no .NET process.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

begin posed threads 100000
until_true grep -q posed ready.posed || fail "the program's threads do not come"

# A wait that begins while the session is open tells the lock's owner: the waiters begin one each 40 ms, the machine may be slow.
owner=$(grep -l Owner /proc/$posed/task/*/comm | cut -d/ -f5)
for i in 1 2 3 4 5; do
	code_of "$spoor" stacks -p $posed
	expect_code 0 "stacks"
	! grep -qE "for the lock of object 0x[0-9a-f]+, held by $owner Owner$" out || break
	sleep 0.3
done
has out '^Managed \([0-9]+\), \.NET [0-9.]+, [0-9:]+ UTC: [0-9]+ threads, [0-9]+ with managed frames, '
has out '^4 threads  '
has out '^  [0-9]+ Parked 0, [0-9]+ Parked 1, [0-9]+ Parked 2, [0-9]+ Parked 3$'
has out "for the lock of object 0x[0-9a-f]+, held by $owner Owner$"
has out '^    Posed\.Park\(\) +Managed$'
has out '^4 threads  waiting for an event(,|$)'
has out '^[0-9]+ Sleeper  waiting for its sleep to end(,|$)'
has out '^    Posed\.Hold\(\) +Managed$'
has out '^    Posed\.Want\(\) +Managed$'
has out '^    Posed\.Sleep\(\) +Managed$'
has out '^    Threading\.Thread\.Sleep\(int\) +System\.Private\.CoreLib$'
has out '^    Program\.Main\(string\[\]\) +Managed$'

# A starved pool: its workers wait for a task, also where the work item itself is System.Threading's code. One is idle: it has no work item on its stack.
begin starve starve 3
until_true grep -q starved ready.starve || fail "the pool does not starve"
code_of "$spoor" stacks -p $starve
expect_code 0 "stacks of a starved pool"
[ "$(grep -cE '^3 threads  waiting for a task(,|$)' out)" = 2 ] || fail "$(grep -E 'threads  |TP Worker' out)"

# A thread that is never long in one place: its system call belongs to its frames, or it is said that they are of two moments. The workers do not move.
code_of "$spoor" stacks -p $starve --json --every 1ms --count 30 --timeout 30s
expect_code 0 "thirty rounds of a thread that swings"
sed 's/{"threads":\[/\n/g' out | grep '"name":"Swinger"' >swings
grep -v '"same_moment":false' swings | grep '"system_call":"read"' | grep -F 'Starved.Nap()' >torn
[ ! -s torn ] || fail "a read is joined with the frames of a sleep: $(cut -c1-600 torn)"
# Its endless loop was replaced while it ran; that is one frame.
! grep -E 'Starved\.Swing\(\)[^}]*\},\{"name":"Starved\.Swing\(\)' swings | cut -c1-600 | grep . || fail "a frame occurs twice"
workers=$(sed 's/{"threads":\[/\n/g' out | grep -F 'Starved.Block()' | grep -o '"name":".NET TP Worker"[^}]*"same_moment":true' | wc -l)
[ "$workers" = 90 ] || fail "$workers of 90 blocked workers are of one moment"
kill -9 $starve

# The same for programs, and what /proc adds where we may look.
code_of "$spoor" stacks -p $posed --json
expect_code 0 "stacks --json"
has out '"sampled":true,"reason":"",'
has out '"name":"Posed.Park\(\)","module":"Managed","kind":"jit"'
if [ "$(id -u)" = 0 ]; then
	has out '"name":"Parked 0","state":"S","mode":"native","system_call":"futex",'
	has out '"name":"Reader","state":"S","mode":"native","system_call":"[a-z]+","waits_at":"(pipe|socket):\[[0-9]+\]"'
	# (libc's own functions have names where its debug file is.) One stack from the kernel to where threads begin: the runtime's own frames on both sides of the managed ones.
	has out '"name":"(__futex[a-z_]*|libc\.so\.6\+0x[0-9a-f]+)","module":"libc\.so\.6","kind":"native"\},(\{"name":"libcoreclr\.so[^}]*\},)+\{"name":"System\.Threading\.Monitor\.Wait\('
	has out '"name":"System\.Threading\.Thread\.StartCallback\(\)"[^}]*\},(\{"name":"libcoreclr\.so[^}]*\},)+\{"name":"(start_thread|libc\.so\.6\+0x[0-9a-f]+)"'
	has out '"name":"\.NET Finalizer"[^]]*\],"frames":\[(\{[^}]*"kind":"kernel"\},)+\{"name":"(__futex|libc\.so\.6\+0x)[^}]*\},(\{"name":"libcoreclr\.so[^}]*\},)+\{"name":"(start_thread|libc\.so\.6\+0x[0-9a-f]+)"'
fi
code_of "$spoor" stacks -p $posed --managed --dotnet-stack
expect_code 0 "stacks in the form of dotnet-stack"
tid=$(grep -l Sleeper /proc/$posed/task/*/comm | cut -d/ -f5)
inner=$(awk '$1 == "NSpid:" { print $NF }' /proc/$posed/task/$tid/status)
has out "^Thread \(0x$(printf %X "$inner")\):$"
has out '^  Managed!Posed\.Sleep\(\)$'

# Seventy rounds: as many objects, and no session is left open (a process has 64, and would grow slower with each).
code_of "$spoor" stacks -p $posed --every 10ms --count 70 --json
expect_code 0 "seventy rounds"
[ "$(grep -c '^{"pid":.*"sampled":true' out)" = 70 ] || fail "not seventy rounds"
code_of "$spoor" ps --json -p $posed
has out '"reachable":true'

# Two processes, at the same time.
begin idle idle 100000
# A busy machine may keep a runtime from its sample for longer than the five seconds that are waited for.
code_of "$spoor" stacks -p $posed,$idle --managed --json --timeout 30s
expect_code 0 "two processes"
[ "$(grep -c '"sampled":true' out)" = 2 ] || fail "not two processes: $(grep -oE '"pid":[0-9]+|"sampled":false,"reason":"[^"]*"' out)"

# Killed, or stopped by a signal, in the midst of a session: the guard ends it, the program's places come back, and it answers all the while.
probe=$(dirname "$spoor")/tests/probe
places=$("$probe" slots $idle 2>err) || fail "the places before anything happened"
for signal in KILL STOP; do
	start hurt "$spoor" stacks -p $idle --every 1ms --managed >hurt.out 2>&1
	until_true grep -q 'with managed frames' hurt.out || fail "no first round before SIG$signal"
	kill -$signal $hurt
	sleep 3
	"$probe" ask $idle >/dev/null 2>err || fail "after SIG$signal the program does not answer"
	all_places_free() {
		[ "$("$probe" slots $idle 2>err)" -ge "$places" ]
	}
	until_true all_places_free || fail "after SIG$signal there are $("$probe" slots $idle) places, $places before"
	kill -9 $hurt 2>/dev/null
	wait $hurt
done

# Interrupted between rounds: done, and nothing said.
"$spoor" stacks -p $idle --every 1h >rounds 2>err &
rounds=$!
started="$started $rounds"
until_true grep -q 'with managed frames' rounds || fail "no first round"
kill -INT $rounds
wait $rounds || fail "an interrupt between rounds is no failure"

# What is not there, does not answer, or is no .NET process: what /proc knows, and why there is no more.
code_of "$spoor" stacks -p $$
expect_code 1 "a shell"
has out '^no managed frames from the runtime: '
has err " tells no managed frames: "
code_of "$spoor" stacks -p 4194303
expect_code 1 "a process that is not there"
kill -STOP $idle
code_of timeout 20 "$spoor" stacks -p $idle --timeout 1s
expect_code 1 "a process that is stopped"
has out 'stopped'
kill -CONT $idle
code_of "$spoor" stacks -p $idle
expect_code 0 "it goes on"
kill -9 $posed $idle
