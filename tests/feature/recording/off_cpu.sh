#!/bin/sh
# record --off-cpu: the times of threads that sleep, read and lock, and that start and end meanwhile, are those that the threads measure; with rights also why, where, and who woke them.
. "$(dirname "$(realpath "$0")")/../prelude"
wait_ms=300

# stolen_ns: what the host of a virtual machine took from it so far. Threads do not count it as their own CPU time.
stolen_ns() {
	echo $(($(awk '$1 == "cpu" { print $9 + 0 }' /proc/stat) * 1000000000 / $(getconf CLK_TCK)))
}

# recorded FILE OPTION...: records `target waits`; ./threads has what its threads say of themselves, ./x.json the events.
recorded() {
	stolen_before=$(stolen_ns)
	code_of $user ./spoor record --off-cpu -o x.nettrace "$@" -- ./target waits $wait_ms
	slack_ns=$((100000000 + $(stolen_ns) - stolen_before))
	expect_code 0 "recording of threads that wait"
	cp out threads
	cp err words
	[ "$(wc -l <threads)" = 3 ] || fail "the threads did not end"
	"$spoor" events x.nettrace --json >x.json 2>err || fail "no events in x.nettrace"
}

# A thread's time on the CPU is what it has measured (its start and its end are not in its own figure), and its times add up to at least its own time on the wall.
expect_times() {
	while read -r name tid wall_ns cpu_ns; do
		json_lines x.json '[.[] | select(.event == "ThreadTime" and .tid == ($a | tonumber)).fields] | length == 1 and .[0].Ended
			and (.[0].RunNs - ($b | tonumber) | . > -20e6 and . < '"$slack_ns"')
			and .[0].RunNs + .[0].ReadyNs + .[0].BlockedNs > ($c | tonumber) - 1e6' "$tid" "$cpu_ns" "$wall_ns"
		json_lines x.json '[.[] | select(.event == "cswitch" and .tid == ($a | tonumber)).fields.Value] | max >= ($b | tonumber) * 1e6' "$tid" $wait_ms
	done <threads
}

# tid_of NAME: a thread's id.
tid_of() {
	sed -n "s/^$1 \([0-9]*\) .*/\1/p" threads
}

cp "$spoor" "$target" .
chmod 755 . spoor target
user=
if is_root; then
	recorded --wakers
	expect_times
	for name in sleeper reader locker; do
		# the longest block, where it was, and that it slept
		json_lines x.json '[.[] | select(.event == "cswitch" and .tid == ($a | tonumber) and .fields.State == 1)] | max_by(.fields.Value)
			| [.stack[].function] | index("wait_thread") != null' "$(tid_of $name)"
	done
	# These two were woken by the main thread, in the function that it was in.
	for name in reader locker; do
		json_lines x.json '[.[] | select(.event == "Wakeup" and .fields.WokenTid == ($a | tonumber) and .tid == .pid)]
			| any([.stack[].function] | index("wait_for_all") != null)' "$(tid_of $name)"
	done
	json_lines x.json '[.[] | select(.event == "SessionEnd")] | length == 1'
	has words 'blocks? .*in .*nothing lost'

	# The sum rule of each thread, of threads that start and end meanwhile; and the functions have all of the time.
	"$spoor" report x.nettrace --thread-time --json >out 2>err || fail "no thread time"
	json out '.stacks and ([.processes[].threads[]] | length >= 4 and all(.wall_ns == .on_cpu_ns + .runnable_ns + .blocked_ns and .wall_ns == .end_ns - .begin_ns))'
	json out '[.processes[].threads[] | select(.name == "sleeper" or .name == "reader" or .name == "locker")] | length == 3 and all(.ended and .begin_ns > 0 and .blocked_ns >= 2e8)'
	json out '.processes | all((([.functions[].blocked_ns] | add) - .blocked_ns == 0) and (([.functions[].runnable_ns] | add) - .runnable_ns == 0))'
	# What they wait for.
	"$spoor" report x.nettrace --off-cpu --json >out 2>err || fail "no report of blocked time"
	# A libc without its symbol table has no name for the function that waits for a lock.
	lock=lock
	! value out '[.processes[].waits[] | select(.thread == "locker")] | max_by(.blocked_ns).stack | any(startswith("libc.so.6!sub_"))' | grep -q true || lock=futex
	for each in 'sleeper sleep' 'reader pipe' "locker $lock"; do
		json out '[.processes[].waits[] | select(.thread == $a)] | max_by(.blocked_ns).cause == $b' "${each% *}" "${each#* }"
	done
	json out '[.processes[].waits[] | select(.thread == "locker" and .cause == "'$lock'").woken_by] | all(.thread == "target" and (.stack | index("wait_for_all")))'
	# The function of the program, not of the kernel.
	json out '[.processes[].waits[] | select(.thread == "sleeper" and .cause == "sleep")] | max_by(.blocked_ns).method == "sleep_here"'
	json out '[.processes[].waits[] | select(.thread == "reader" and .cause == "pipe").woken_by.method] | all(. == "wait_for_all")'
	"$spoor" report x.nettrace --off-cpu >out 2>err || fail "no report of blocked time"
	has out 'pipe: read'
	has out 'woken by target .* in wait_for_all'
	"$spoor" flame x.nettrace --off-cpu -o - --format folded >out 2>err || fail "no flame graph of blocked time"
	has out ';sleep_here;.*;\[sleep\] [0-9]+$'
	"$spoor" flame x.nettrace --wakers -o - --format folded >out 2>err || fail "no flame graph of wakers"
	has out ';wait_for_all;.*try_to_wake_up'
	"$spoor" flame x.nettrace --wall -o - --format folded >out 2>err || fail "no wall-clock flame graph"
	has out '\[sleep\] [0-9]+$'
	has out ';spin_here [0-9]+$'

	# The waits of programs without events of waits.
	if [ $lock = lock ]; then
		"$spoor" report x.nettrace --locks --json >out 2>err || fail "no waits for locks"
		json out '[.processes[].waits[]] | length > 0 and all(.kind == "lock" and .owner_tid == null) and (map(select(.waited_ns >= ($a | tonumber) * 9e5)) | length == 1)' $wait_ms
		"$spoor" report x.nettrace --locks >out 2>err || fail "no waits for locks"
		has out 'known by     context switches'
		has out ' lock: .*lock'
	fi
	"$spoor" report x.nettrace --waits --json >out 2>err || fail "no waits"
	json out '[.processes[].waits[]] | any(.kind == "sleep" and (.stack | index("sleep_here"))) and all(.kind != "lock" and .kind != "pipe")'

	# The profile does the same, and goes together with the options of --off-cpu.
	code_of "$spoor" record -q --profile thread-time --wakers -o profile.nettrace -- ./target waits 20
	expect_code 0 "the profile thread-time"
	"$spoor" events profile.nettrace --event cswitch --json >x.json 2>err || fail "no switches by the profile"
	json_lines x.json '[.[] | select(.event == "cswitch")] | length > 3 and any(has("stack"))'
	code_of "$spoor" record --profile gc --wakers -- true
	expect_code 2 "--wakers without --off-cpu"

	# Sums in place of short blocks: the totals of the threads stay.
	recorded --min-block 3600s
	json_lines x.json '[.[] | select(.event == "cswitch" and (.fields.Flags / 2 | floor) % 2 == 0)] == []'
	json_lines x.json '. as $all | [.[] | select(.event == "ThreadTime" and .fields.Ended)] | length >= 3 and all(. as $time
		| ([$all[] | select(.event == "ShortBlocks" and .tid == $time.tid).fields.Value] | add) == $time.fields.ReadyNs + $time.fields.BlockedNs)'

	command -v setpriv >/dev/null || exit 0
	chmod 777 .
	user='setpriv --reuid=65534 --regid=65534 --clear-groups'
fi
# Without rights: the same times, no stacks, and only preempted or not.
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 1 ] || exit 0
recorded
expect_times
json_lines x.json '[.[] | select(.event == "cswitch")] | length > 3 and all(.fields.State == 0 or .fields.State == 3) and all(has("stack") | not)'
json_lines x.json '[.[] | select(.event == "Notice" and .fields.Code == "switch-stacks")] | length == 1'
has words 'blocks have no stacks'
"$spoor" report x.nettrace --thread-time --json >out 2>err || fail "no thread time"
json out '(.stacks | not) and ([.processes[].threads[]] | length >= 4 and all(.wall_ns == .on_cpu_ns + .runnable_ns + .blocked_ns))'
"$spoor" report x.nettrace --thread-time >out 2>err || fail "no thread time"
has out 'without the right to use'
