#!/bin/sh
# spoor stacks of a real process shows known threads, grouped and named, what they wait for, and the owner of a lock; in rounds, without a session that is
# left; also of a process that is stopped, has ended, or is no .NET process.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

begin posed threads 100000
until_true grep -q posed ready.posed || fail "the program's threads do not come"

# A wait that begins while the session is open shows the lock's owner. The waiters begin one each 40 ms, but a busy machine may take longer.
owner=$(grep -l Owner /proc/$posed/task/*/comm | cut -d/ -f5)
for i in $(seq 20); do
	code_of "$spoor" stacks -p $posed --timeout 60s
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

# A starved pool: its workers wait for a task, also where the work item itself is code of System.Threading. One worker is idle: it has no work item on its stack.
begin starve starve 3
until_true grep -q starved ready.starve || fail "the pool does not starve"
all_starve() {
	code_of "$spoor" stacks -p $starve --timeout 60s
	expect_code 0 "stacks of a starved pool"
	[ "$(grep -cE '^3 threads  waiting for a task(,|$)' out)" = 2 ]
}
until_true all_starve || fail "$(grep -E 'threads  |TP Worker' out)"

# A thread that moves all the time: its system call belongs to its frames, or "same_moment" is false. The workers do not move.
code_of "$spoor" stacks -p $starve --json --every 1ms --count 30 --timeout 60s
expect_code 0 "thirty rounds of a thread that swings"
value out '.stacks[] | select(any(.threads[]; .name == "Swinger"))' >swings
[ -s swings ] || fail "no stack of the thread that moves"
value swings 'select(any(.threads[]; .name == "Swinger" and .same_moment and .system_call == "read") and any(.frames[]; .name == "Starved.Nap()"))' >torn
[ ! -s torn ] || fail "a read is joined with the frames of a sleep: $(head -c 600 torn)"
# Its endless loop was replaced while it ran, and is one frame.
value swings 'select([.frames[] | select(.name == "Starved.Swing()")] | length > 1)' >twice
[ ! -s twice ] || fail "a frame occurs twice: $(head -c 600 twice)"
workers=$(value_lines out '[.[].stacks[] | select(any(.frames[]; .name == "Starved.Block()")) | .threads[] | select(.name == ".NET TP Worker" and .same_moment)] | length')
[ "$workers" = 90 ] || fail "$workers of 90 blocked workers have frames and state of one moment"
kill -9 $starve

# The same as JSON, and what /proc adds with the right to read it.
code_of "$spoor" stacks -p $posed --json --timeout 60s
expect_code 0 "stacks --json"
json out '.sampled and .reason == ""'
json out 'any(.stacks[].frames[]; .name == "Posed.Park()" and .module == "Managed" and .kind == "jit")'
if [ "$(id -u)" = 0 ]; then
	json out 'any(.stacks[].threads[]; .name == "Parked 0" and .state == "S" and .mode == "native" and .system_call == "futex")'
	json out 'any(.stacks[].threads[]; .name == "Reader" and .state == "S" and .mode == "native" and (.waits_at | test("^(pipe|socket):")))'
	# One stack from the kernel to the start of the thread, with the runtime's frames before and after the managed ones. (libc's functions have names where its debug file is installed.)
	tab=$(printf '\t')
	chain='[.frames[] | "\(.kind) \(.name)"] | join("\t")'
	value out ".stacks[] | $chain" >chains
	runtime="(${tab}native libcoreclr\.so[^$tab]*)+"
	start="$runtime${tab}native (start_thread|libc\.so\.6(\+0x|!sub_)[0-9a-f]+)"
	has chains "native (__futex[a-z_]*|libc\.so\.6(\+0x|!sub_)[0-9a-f]+)$runtime${tab}[a-z0-9]+ System\.Threading\.Monitor\.Wait\("
	has chains "[a-z0-9]+ System\.Threading\.Thread\.StartCallback\(\)$start"
	value out ".stacks[] | select(any(.threads[]; .name == \".NET Finalizer\")) | $chain" >chains
	has chains "^(kernel [^$tab]*$tab)+native (__futex|libc\.so\.6\+0x|libc\.so\.6!sub_)[^$tab]*$start"
fi
code_of "$spoor" stacks -p $posed --managed --dotnet-stack
expect_code 0 "stacks in the form of dotnet-stack"
tid=$(grep -l Sleeper /proc/$posed/task/*/comm | cut -d/ -f5)
inner=$(awk '$1 == "NSpid:" { print $NF }' /proc/$posed/task/$tid/status)
has out "^Thread \(0x$(printf %X "$inner")\):$"
has out '^  Managed!Posed\.Sleep\(\)$'

# Seventy rounds: as many objects, and no session is left (a process has 64 slots).
code_of "$spoor" stacks -p $posed --every 10ms --count 70 --json --timeout 60s
expect_code 0 "seventy rounds"
json_lines out '[.[] | select(.sampled)] | length == 70'
code_of "$spoor" ps --json -p $posed
json out '.processes[0].reachable'

# Two processes, at the same time.
begin idle idle 100000
code_of "$spoor" stacks -p $posed,$idle --managed --json --timeout 60s
expect_code 0 "two processes"
json_lines out '[.[] | select(.sampled)] | length == 2'

# Killed or stopped during a session: the guard ends it, the slot becomes free, and the program answers all the time.
probe=$(dirname "$spoor")/tests/probe
for signal in KILL STOP; do
	start hurt "$spoor" stacks -p $idle --every 1ms --managed >hurt.out 2>&1
	until_true grep -q 'with managed frames' hurt.out || fail "no first round before SIG$signal"
	kill -$signal $hurt
	"$probe" ask $idle >/dev/null 2>err || fail "after SIG$signal the program does not answer"
	until_true no_session $idle || fail "after SIG$signal there are $(sessions $idle) sessions"
	kill -9 $hurt 2>/dev/null
	wait $hurt
done
until_true all_slots_free $idle || fail "$(free_slots $idle) of 64 slots are free"

# SIGINT between rounds: exit code 0 and no message.
"$spoor" stacks -p $idle --every 1h >rounds 2>err &
rounds=$!
started="$started $rounds"
until_true grep -q 'with managed frames' rounds || fail "no first round"
kill -INT $rounds
wait $rounds || fail "an interrupt between rounds is no failure"

# A process that does not exist, does not answer, or is no .NET process: what /proc shows, and the reason for the rest.
code_of "$spoor" stacks -p $$
expect_code 1 "a shell"
has out '^no managed frames from the runtime: '
has err "^no managed frames from the runtime of "
code_of "$spoor" stacks -p 4194303
expect_code 1 "a process that is not there"
kill -STOP $idle
code_of timeout 100 "$spoor" stacks -p $idle --timeout 1s
expect_code 1 "a process that is stopped"
has out 'stopped'
kill -CONT $idle
code_of "$spoor" stacks -p $idle --timeout 60s
expect_code 0 "it continues"
kill -9 $posed $idle
