#!/bin/sh
# record --off-cpu where something is missing: tracefs, rights, locked memory, memory for the rings. As much as possible is recorded, the report says what is missing, and each thread's times add up.
. "$(dirname "$(realpath "$0")")/../prelude"
is_root || skip "not root: rights cannot be taken away"
command -v setpriv >/dev/null || skip "there is no setpriv"
chmod 777 .
cp "$spoor" "$target" .
chmod 755 spoor target

# expect_sums COUNT: so many threads of the recording have ended in it, and the times of each add up to its life.
expect_sums() {
	"$spoor" report x.nettrace --thread-time --json >out 2>err || fail "no thread time"
	json out '[.processes[].threads[]] | (map(select(.ended)) | length) >= ($a | tonumber) and all(.wall_ns == .on_cpu_ns + .runnable_ns + .blocked_ns and .wall_ns == .end_ns - .begin_ns)' "$1"
}

# Threads and processes that start and end in the recording, some at the same time.
code_of ./spoor record --off-cpu --wakers -o x.nettrace -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do ./target waits 3 >/dev/null & ./target waits 1 >/dev/null; wait; done'
expect_code 0 "recording of processes that start and end"
expect_sums 80

# Neither /sys/kernel/tracing nor /sys/kernel/debug is mounted: the recorder mounts its own, which nothing else sees.
if unshare -m true 2>/dev/null; then
	code_of unshare -m sh -c 'umount -R /sys/kernel/tracing 2>/dev/null; umount -R /sys/kernel/debug 2>/dev/null
		[ ! -e /sys/kernel/tracing/events ] || exit 42
		./spoor record --off-cpu -o x.nettrace -- ./target waits 50 && [ ! -e /sys/kernel/tracing/events ]'
	if [ $code != 42 ]; then
		expect_code 0 "recording without tracefs"
		expect_sums 3
		json out '.stacks'
	fi
fi

# without_rights NAME command...: exact times, no stacks; the recording and its report say so.
without_rights() {
	what=$1
	shift
	rm -f x.nettrace
	code_of "$@" ./spoor record -v --off-cpu -o x.nettrace -- ./target waits 50
	expect_code 0 "recording $what"
	cp err words
	expect_sums 3
	json out '.stacks | not'
	has words 'blocks have no stacks: this user may not use the kernel'
	"$spoor" report x.nettrace --off-cpu >out 2>err || fail "no report of $what"
	has out 'without the right to use the kernel.s tracepoints'
}
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 1 ]; then
	without_rights "as another user" setpriv --reuid=65534 --regid=65534 --clear-groups
	without_rights "as root of a container without capabilities" setpriv --bounding-set=-all --inh-caps=-all
	without_rights "with little locked memory" sh -c 'ulimit -l 64 && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' sh
	# the kernel's own allowance for perf is left: smaller rings
	has words 'rings +[0-9]+ of [0-9.]+ kB'
	code_of setpriv --bounding-set=-all --inh-caps=-all ./spoor record -a --off-cpu -o x.nettrace --duration 1s
	expect_code 3 "recording the machine without capabilities"
	has err 'add CAP_PERFMON'
fi

rm -f x.nettrace
# A recorder that does not run: the program is not held up, and what did not fit into the rings is counted.
start recorder ./spoor record --off-cpu --no-symbols -o x.nettrace -- sh -c 'until [ -e go ]; do sleep 0.1; done; ./target switches 150000' >switched 2>words
until_true test -e x.nettrace || fail "no recording"
kill -STOP $recorder
touch go
until_true grep -q switched switched || fail "the program is held up by a recorder that does not run"
kill -CONT $recorder
wait $recorder || fail "the recording of many switches: $(cat words)"
has words '[0-9,]+ blocks in .*, [0-9,]+ samples and switches lost'
# The records of ends may be among those that were lost.
expect_sums 1
"$spoor" events x.nettrace --event Loss --json >x.json 2>err || fail "no losses"
json_lines x.json 'any(.fields.Source == "ring" and .fields.Count > 1000)'
