#!/bin/sh
# Harmless to the target, whatever becomes of the recorder: stopped, killed, out of memory, out of disk. Each time the program goes on with its work, its
# port answers another tool, all 64 places of its sessions are free again, and it can end. The last part shows that the guard is what does it.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"
probe=$(dirname "$spoor")/tests/probe
not_here=''

# Rounds done so far, and ticks of CPU time, of a worker.
done_so_far() {
	echo "$(tail -n 1 "ready.$1" | cut -d' ' -f2) $(sed 's/.*) //' "/proc/$2/stat" | cut -d' ' -f12)"
}

# speed NAME PID: rounds a CPU second, over two seconds. Of the CPU's own time, because others may want the CPU too.
speed() {
	before=$(done_so_far "$1" "$2")
	sleep 2
	after=$(done_so_far "$1" "$2")
	echo "$before $after" | awk '{ ticks = $4 - $2; print (ticks > 0 ? int(100 * ($3 - $1) / ticks) : 0) }'
}

# The longest time between two lines of a worker, which writes one each 100 ms, in ms.
longest_gap() {
	awk 'NF == 2 { if (last && $1 - last > gap) gap = $1 - last; last = $1 } END { print gap + 0 }' "ready.$1"
}

guard_of() {
	for each in $(cat "/proc/$1/task/$1/children"); do
		[ "$(cat "/proc/$each/comm" 2>/dev/null)" = spoor-guard ] && echo "$each"
	done
}

# guards NUMBER: the recorder's guard has so many sessions, beside its channel and its owner.
guards() {
	guard=$(guard_of $recorder)
	[ "$(echo "$guard" | wc -w)" = 1 ] && [ "$(find "/proc/$guard/fd" -mindepth 1 | wc -l)" = $(($1 + 2)) ]
}

# As many as before can be opened: all 64, but for those of a machine-wide recording that somebody else makes beside this test. To end them takes the
# runtime some seconds, so it is not done more often than need be; one that is still being ended on a busy machine gets its time.
all_free() {
	for _ in 1 2 3; do
		free=$("$probe" slots "$worker" 2>err) || fail "$1"
		[ "$free" -lt "$places" ] || return 0
		echo "$free of $places places are free: $1"
		sleep 1
	done
	fail "$free of $places places stay free: $1"
}

# Also while nobody has waited for it.
gone() {
	case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c1) in
	'' | Z) return 0 ;;
	esac
	return 1
}

# One session for what comes; that for what was there has ended.
has_names() {
	guards 1 && sleep 0.2 && guards 1
}

record_it() {
	rm -f "$1"
	start recorder "$spoor" record -q -F 199 -p $worker -o "$1"
	until_true has_names || fail "the recorder has not one guard with one session: $(ls -l "/proc/$guard/fd")"
}

# well WHEN: the worker works, and answers others.
well() {
	now=$(speed worker $worker)
	[ "$now" -ge $((normal / 3)) ] || fail "$1: $now rounds a CPU second, $normal before"
	asked=$("$probe" ask $worker 2>err) || fail "$1: another tool's question"
	opened=$("$probe" session $worker 2>err) || fail "$1: another tool's session"
	echo "$1: $now rounds a CPU second ($normal before), answers in $asked ms, a session in $opened ms"
}

begin worker work 110000
worker_started=$(date +%s)
until_true grep -qE '^[0-9]+ [0-9]+' ready.worker || fail "the program does not work"
places=$("$probe" slots $worker 2>err) || fail "the places before anything happened"
[ "$places" -ge 56 ] || fail "only $places of 64 places are free before anything happened"
normal=$(speed worker $worker)
[ "$normal" -gt 0 ] || fail "the program does nothing"

# Stopped. The guard needs two seconds; afterwards nothing of ours is left in there.
record_it x.nettrace
kill -STOP $recorder
well "recorder stopped"
until_true guards 0 || fail "the sessions of a stopped recorder are not ended"
all_free "recorder stopped"
kill -CONT $recorder
until_true has_names || until_true has_names || fail "the recorder that goes on opens no session again"
sleep 1
kill -INT $recorder
wait $recorder || fail "the recording that was stopped fails"
"$spoor" report -v x.nettrace >report
has report '^spoor was stopped for [0-9.]+ s: its sessions in 1 .NET process were ended after 2 s'
has report '^opened in .*: live Microsoft-Windows-DotNETRuntime:0x120003403d:[45], 16 MB, no stacks; rundown 0x18'
"$spoor" report --json x.nettrace >json
has json '"complete":true'
has json '"code":"guard"'
has json '"opened":\["live '
# What was compiled while nobody listened has its name: the worker compiles all the time.
folded x.nettrace x.folded
at_least x.folded 20 'Worker\.Run'
at_least x.folded 20 'Made_[0-9]+'

# Ctrl-Z: nothing is open from the moment on in which it stands still. timeout puts it into a process group of its own: one without a parent
# outside, as this script's may be, is never stopped by a terminal's signal.
rm -f x.nettrace
start limiter timeout 100 "$spoor" record -q -F 199 -p $worker -o x.nettrace
until_true test -s x.nettrace || fail "no recording appears"
recorder=$(cat /proc/$limiter/task/$limiter/children | tr -d ' ')
started="$started $recorder"
until_true has_names || fail "the recorder has not one guard with one session"
kill -TSTP $recorder
until_true grep -q '^State:.T' "/proc/$recorder/status" || fail "Ctrl-Z does not stop it"
guards 0 || fail "Ctrl-Z stops it with open sessions"
well "Ctrl-Z"
kill -CONT $recorder
until_true has_names || fail "after Ctrl-Z no session is opened again"
# And a second time, now with kill at its end.
kill -TSTP $recorder
until_true grep -q '^State:.T' "/proc/$recorder/status" || fail "a second Ctrl-Z does not stop it"
kill -CONT $recorder
until_true has_names || fail "after a second Ctrl-Z no session is opened again"
kill -INT $recorder
wait $limiter || fail "the recording after Ctrl-Z fails"
"$spoor" report x.nettrace >report
has report '^spoor was stopped for .* \(Ctrl-Z, SIGTSTP\)'
has_no report 'its sessions in'

# Killed, at any moment of its life.
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

# The guard is killed: there is another one, which does the same.
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
until_true gone "$guard" || until_true gone "$guard" || fail "the second guard stays: $(cat "/proc/$guard/stat")"
all_free "recorders and guards killed"

# A quiet program: no event tells its runtime that nobody listens, so each killed recorder would cost it a place for good.
begin quiet idle 60000
worker_before=$worker
worker=$quiet
for _ in 1 2 3 4 5 6; do
	record_it x.nettrace
	kill -9 $recorder
	wait $recorder
	until_true gone "$guard" || fail "the guard of a killed recorder stays"
done
all_free "recorders of a quiet program killed"
kill -9 $quiet
worker=$worker_before

# A disk that is full: the recording fails, and that is all.
if is_root && unshare -m true 2>/dev/null; then
	mkdir disk
	code_of timeout 20 unshare -m sh -c 'mount -t tmpfs -o size=64k none disk && exec "$@"' - "$spoor" record -F 999 -p $worker --duration 15s -o disk/x.nettrace
	[ "$code" = 1 ] || [ "$code" = 0 ] || fail "exit code $code on a full disk"
	has err 'space|disk'
	well "disk full"
else
	not_here="$not_here; a full disk needs root and a mount namespace"
fi

# Out of memory: the kernel kills the recorder in its group. A hog takes what there is.
group=''
if is_root; then
	for root in /sys/fs/cgroup /sys/fs/cgroup/memory; do
		limit=memory.max
		[ "$root" = /sys/fs/cgroup ] || limit=memory.limit_in_bytes
		if mkdir "$root/spoor-test-$$" 2>/dev/null; then
			group=$root/spoor-test-$$
			# Where groups of version 1 are mounted, the folder above them is a plain one.
			[ -e "$group/$limit" ] && { echo $((64 << 20)) >"$group/$limit"; } 2>/dev/null && break
			rmdir "$group"
			group=''
		fi
	done
fi
clean_up_more() {
	[ -z "$group" ] || rmdir "$group" 2>/dev/null || { sleep 0.5 && rmdir "$group"; }
}
if [ -n "$group" ]; then
	record_it x.nettrace
	guard=$(guard_of $recorder)
	echo "$recorder" >"$group/cgroup.procs"
	echo "$guard" >"$group/cgroup.procs"
	echo 1000 >"/proc/$recorder/oom_score_adj"
	sh -c 'echo $$ >"$1/cgroup.procs"; head -c 200000000 /dev/zero | tail >/dev/null' - "$group" 2>/dev/null
	until_true gone $recorder || fail "the kernel did not kill the recorder for its memory"
	wait $recorder
	until_true gone "$guard" || fail "the guard stays"
	well "out of memory"
	"$spoor" report --json x.nettrace >json || fail "the recording that ran out of memory does not open"
else
	not_here="$not_here; out of memory needs root and a memory control group"
fi
# An address space that is used up: malloc and mmap fail from now on.
record_it x.nettrace
prlimit --pid $recorder --as=1000000
sleep 1
well "address space used up"
kill -INT $recorder 2>/dev/null
wait $recorder
all_free "no disk, no memory"

gap=$(longest_gap worker)
echo "the longest time without a sign of the program: $gap ms of $(($(date +%s) - worker_started)) s"
[ "$gap" -lt 4000 ] || fail "the program stood still for $gap ms"
kill -9 $worker

# Its end: it tells all sessions that it is the end, and waits until that is read. Here nobody reads but the guard.
begin worker work 4000
record_it x.nettrace
kill -STOP $recorder
sleep 6
gone $worker || fail "the program cannot end while the recorder is stopped"
kill -CONT $recorder
wait $recorder || fail "the recording of a program that ended meanwhile fails"
# Without a guard it would wait for ever. If it did not, this whole test would show nothing.
begin worker work 4000
record_it x.nettrace
kill -STOP "$(guard_of $recorder)" $recorder
sleep 7
if gone $worker; then
	echo "this runtime ends without its sessions having been read"
fi
kill -CONT "$(guard_of $recorder)" $recorder
until_true gone $worker || fail "the program cannot end although all go on"
wait $recorder
[ -z "$not_here" ] || skip "${not_here#; } (the rest holds)"
exit 0
