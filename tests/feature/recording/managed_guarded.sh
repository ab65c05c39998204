#!/bin/sh
# A recorder that is stopped, killed, out of memory or out of disk space does not harm its target: the program continues, its port answers another tool,
# all 64 slots of sessions become free, and the program can end. The last part shows that the guard is the cause.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
probe=$(dirname "$spoor")/tests/probe
not_here=''

# done_so_far NAME PID: prints the rounds and the ticks of CPU time of a worker.
done_so_far() {
	echo "$(tail -n 1 "ready.$1" | cut -d' ' -f2) $(sed 's/.*) //' "/proc/$2/stat" | cut -d' ' -f12)"
}

# speed NAME PID: prints rounds per second of CPU time, over 500 ms of CPU time, which does not depend on other programs.
speed() {
	before=$(done_so_far "$1" "$2")
	until_true used_more "$2" "$(used "$2")" 500
	sleep 0.2
	after=$(done_so_far "$1" "$2")
	echo "$before $after" | awk '{ ticks = $4 - $2; print (ticks > 0 ? int(100 * ($3 - $1) / ticks) : 0) }'
}

# longest_gap NAME: prints the longest time between two lines of a worker in ms. It writes a line each 100 ms.
longest_gap() {
	awk 'NF == 2 { if (last && $1 - last > gap) gap = $1 - last; last = $1 } END { print gap + 0 }' "ready.$1"
}

guard_of() {
	for each in $(cat "/proc/$1/task/$1/children"); do
		[ "$(cat "/proc/$each/comm" 2>/dev/null)" = spoor-guard ] && echo "$each"
	done
}

# guards NUMBER: the recorder's guard has so many sessions. It also has descriptors of its channel and its owner.
guards() {
	guard=$(guard_of $recorder)
	[ "$(echo "$guard" | wc -w)" = 1 ] && [ "$(find "/proc/$guard/fd" -mindepth 1 | wc -l)" = $(($1 + 2)) ]
}

# all_free WHEN: as many slots are free as before the first recording. (A recording of the whole machine beside this test would take one.)
as_before() {
	free=$("$probe" slots "$worker" 2>err) && [ "$free" -ge "$places" ]
}
all_free() {
	until_true as_before || fail "$free of $places slots are free: $1"
}

gone() {
	ended_process "$1"
}

# The sessions for new methods and for exceptions are open, and the one for the rundown has ended.
has_names() {
	guards 2 && sleep 0.2 && guards 2
}

record_it() {
	rm -f "$1"
	start recorder "$spoor" record -q -F 199 -p $worker -o "$1"
	until_true has_names || fail "the recorder has not one guard with two sessions: $(ls -l "/proc/$guard/fd")"
}

# well WHEN: the worker goes on, and answers another tool. (Its speed depends on what else the machine does; bench/run runtime measures it.)
well() {
	now=$(speed worker $worker)
	[ "$now" -gt 0 ] || fail "$1: the program does nothing"
	asked=$("$probe" ask $worker 2>err) || fail "$1: another tool's question"
	opened=$("$probe" session $worker 2>err) || fail "$1: another tool's session"
	echo "$1: $now rounds a CPU second ($normal before), answers in $asked ms, a session in $opened ms"
}

begin worker work 2000000
worker_started=$(date +%s)
until_true grep -qE '^[0-9]+ [0-9]+' ready.worker || fail "the program does not work"
places=$("$probe" slots $worker 2>err) || fail "the slots before the first recording"
[ "$places" -ge 56 ] || fail "only $places of 64 slots are free before the first recording"
normal=$(speed worker $worker)
[ "$normal" -gt 0 ] || fail "the program does nothing"

# Stopped. The guard ends all sessions after two seconds.
record_it x.nettrace
kill -STOP $recorder
well "recorder stopped"
until_true guards 0 || fail "the sessions of a stopped recorder are not ended"
kill -CONT $recorder
until_true has_names || fail "the recorder that continues opens no session"
until_true used_more $worker "$(used $worker)" 1000 # of CPU time
kill -INT $recorder
wait $recorder || fail "the recording that was stopped fails"
"$spoor" report -v x.nettrace >report
has report '^spoor was stopped for [0-9.]+ s: its sessions in 1 .NET process were ended after 2 s'
has report '^opened in .*: live Microsoft-Windows-DotNETRuntime:0x100003403d:[45], 16 MB, no stacks; exceptions Microsoft-Windows-DotNETRuntime:0x200000000:2, 16 MB, no stacks; rundown 0x18'
"$spoor" report --json x.nettrace >x.json || fail "report --json"
json x.json '.recording.complete and any(.notices[]; .code == "guard") and any(.sessions[].opened[]; startswith("live "))'
# Methods that were compiled while the recorder was stopped have names: the worker compiles all the time.
folded x.nettrace x.folded
at_least x.folded 20 'Worker\.Run'
at_least x.folded 5 'Made_[0-9]+'

# Ctrl-Z: the recorder ends its sessions before it stops. timeout(1) makes a process group whose parent is in another group. The kernel does not
# stop other groups.
rm -f x.nettrace
start limiter timeout 500 "$spoor" record -q -F 199 -p $worker -o x.nettrace
until_true test -s x.nettrace || fail "no recording appears"
recorder=$(cat /proc/$limiter/task/$limiter/children | tr -d ' ')
started="$started $recorder"
until_true has_names || fail "the recorder has not one guard with two sessions"
kill -TSTP $recorder
until_true grep -q '^State:.T' "/proc/$recorder/status" || fail "Ctrl-Z does not stop it"
guards 0 || fail "it stops with open sessions"
well "Ctrl-Z"
kill -CONT $recorder
until_true has_names || fail "after Ctrl-Z no session is opened again"
# A second time, and a signal at the end.
kill -TSTP $recorder
until_true grep -q '^State:.T' "/proc/$recorder/status" || fail "a second Ctrl-Z does not stop it"
kill -CONT $recorder
until_true has_names || fail "after a second Ctrl-Z no session is opened again"
kill -INT $recorder
wait $limiter || fail "the recording after Ctrl-Z fails"
"$spoor" report x.nettrace >report
has report '^spoor was stopped for .* \(Ctrl-Z, SIGTSTP\)'
has_no report 'its sessions in'

# Killed at different times after its start.
for moment in 0.05 0.1 0.15 0.2 0.3 0.5; do
	start recorder "$spoor" record -q -p $worker -o killed.nettrace
	sleep $moment
	kill -9 $recorder
	wait $recorder 2>/dev/null
done
record_it x.nettrace
guard=$(guard_of $recorder)
kill -9 $recorder
wait $recorder
until_true gone "$guard" || fail "the guard of a killed recorder stays"
well "recorder killed"

# The guard is killed: a second guard replaces it.
record_it x.nettrace
kill -9 "$guard"
new_guard() {
	next=$(guard_of $recorder)
	[ -n "$next" ] && [ "$next" != "$guard" ]
}
until_true new_guard || fail "a guard that was killed is not replaced"
guard=$next
kill -9 $recorder
wait $recorder
until_true gone "$guard" || fail "the second guard stays: $(cat "/proc/$guard/stat")"

# An idle program sends no events, so its runtime does not notice a killed recorder. Without the guard each killed recorder would take a slot.
begin quiet idle 2000000
worker_before=$worker
worker=$quiet
for _ in 1 2 3 4 5 6; do
	record_it x.nettrace
	kill -9 $recorder
	wait $recorder
	until_true gone "$guard" || fail "the guard of a killed recorder stays"
done
until_true no_session $quiet || fail "$(sessions $quiet) sessions stay in an idle program whose recorders were killed"
kill -9 $quiet
worker=$worker_before

# A full disk: the recording fails.
if is_root && unshare -m true 2>/dev/null; then
	mkdir disk
	code_of timeout 100 unshare -m sh -c 'mount -t tmpfs -o size=64k none disk && exec "$@"' - "$spoor" record -F 999 -p $worker --duration 90s -o disk/x.nettrace
	[ "$code" = 1 ] || [ "$code" = 0 ] || fail "exit code $code on a full disk"
	has err 'space|disk'
	well "disk full"
else
	not_here="$not_here; a full disk needs root and a mount namespace"
fi

# Out of memory: a program takes all memory of the control group, and the kernel kills the recorder.
group=''
if is_root; then
	for root in /sys/fs/cgroup /sys/fs/cgroup/memory; do
		limit=memory.max
		[ "$root" = /sys/fs/cgroup ] || limit=memory.limit_in_bytes
		if mkdir "$root/spoor-test-$$" 2>/dev/null; then
			group=$root/spoor-test-$$
			# Where control groups of version 1 are mounted, the folder above them has no limits.
			[ -e "$group/$limit" ] && { echo $((64 << 20)) >"$group/$limit"; } 2>/dev/null && break
			rmdir "$group"
			group=''
		fi
	done
fi
clean_up_more() {
	[ -z "$group" ] || rmdir "$group" 2>/dev/null || until_true rmdir "$group"
}
if [ -n "$group" ]; then
	record_it x.nettrace
	guard=$(guard_of $recorder)
	echo "$recorder" >"$group/cgroup.procs"
	echo "$guard" >"$group/cgroup.procs"
	echo 1000 >"/proc/$recorder/oom_score_adj"
	sh -c 'echo $$ >"$1/cgroup.procs"; head -c 200000000 /dev/zero | tail >/dev/null' - "$group" 2>/dev/null
	until_true gone $recorder || fail "the kernel did not kill the recorder"
	wait $recorder
	until_true gone "$guard" || fail "the guard stays"
	well "out of memory"
	"$spoor" report --json x.nettrace >json || fail "the recording that ran out of memory does not open"
else
	not_here="$not_here; out of memory needs root and a memory control group"
fi
# An address space that is used up: malloc and mmap fail from here.
record_it x.nettrace
prlimit --pid $recorder --as=1000000
sleep 1
well "address space used up"
kill -INT $recorder 2>/dev/null
wait $recorder
# Sessions that any part had left would still be open. (To open 64 sessions of a program that compiles all the time takes seconds.)
all_free "recorders stopped, killed, without their guard, without disk and memory"

gap=$(longest_gap worker)
echo "the longest time between two lines of the program: $gap ms of $(($(date +%s) - worker_started)) s"
[ "$gap" -lt 30000 ] || fail "the program did not run for $gap ms"
kill -9 $worker

# A runtime that ends sends its last events to all sessions, and waits until they are read. Here only the guard reads them.
begin worker work 2000000
record_it x.nettrace
kill -STOP $recorder
touch end
until_true gone $worker || fail "the program cannot end while the recorder is stopped"
kill -CONT $recorder
wait $recorder || fail "the recording of a program that ended fails"
# Without a guard it waits without a limit. If a runtime did not wait, the parts above would prove nothing.
rm end
begin worker work 2000000
record_it x.nettrace
kill -STOP "$(guard_of $recorder)" $recorder
touch end
sleep 3 # on a machine that is not busy, the program has come to its end
if gone $worker; then
	echo "this runtime ends before its sessions are read"
fi
kill -CONT "$(guard_of $recorder)" $recorder
until_true gone $worker || fail "the program cannot end although recorder and guard continue"
wait $recorder
[ -z "$not_here" ] || skip "${not_here#; } (the rest holds)"
exit 0
