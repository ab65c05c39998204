#!/bin/sh
# Options that users of perf and dotnet-trace know do here what they do there: threads, CPUs, delay, only kernel or user code, a command that sets the
# duration, several outputs, a folder.
. "$(dirname "$(realpath "$0")")/../prelude"

spins='any(.processes[].functions[]; .name == "spin_here")'

# No -- is needed. Options after the command belong to the command.
code_of "$spoor" record -g -F 499 -o x.nettrace "$target" spin 300
expect_code 0 "record COMMAND without --"
paste_next err
has step.out ' spin_here '
code_of "$spoor" report -i x.nettrace --json
json out "$spins"

# Sort orders as in perf report.
code_of "$spoor" report -i x.nettrace --no-children --sort comm,dso,sym --percent-limit 5
expect_code 0 "report --sort comm,dso,sym"
has out '^ +self  process  module  function$'
has out '^ *[0-9.]+ %  target   target  spin_here$'
has_no out '  main$'
code_of "$spoor" report x.nettrace --sort total,dso
has out '^ *(9[0-9.]+|100.0) % +(9[0-9.]+|100.0) %  target$'
code_of "$spoor" report x.nettrace --sort pid --json
json out '.groups[0] | .process == "target" and .pid > 0 and .self_ns > 0'

# -D: only what runs after the delay. A busy machine needs a longer delay for the program before it.
cat >delayed.sh <<END
date +%s%N >begun
"$target" spin 200
date +%s%N >early
until [ -s x.nettrace ]; do sleep 0.1; done
"${target}_reversed" spin 300
END
for delay in 1500 6000 24000; do
	rm -f x.nettrace
	code_of timeout 100 "$spoor" record -q -F 499 -D $delay -o x.nettrace -- sh delayed.sh
	expect_code 0 "record -D"
	[ $((($(cat early) - $(cat begun)) / 1000000)) -ge $((delay * 2 / 3)) ] || break
done
code_of "$spoor" report --json x.nettrace
json out 'any(.processes[]; .name == "target_reversed")'
json out 'all(.processes[]; .name != "target")'
rm x.nettrace
code_of "$spoor" record -q -D 100s -o x.nettrace -- true
expect_code 1 "a command that ends before the delay is over"
has err '^nothing was recorded: the command ended before the delay was over'
[ ! -e x.nettrace ] || fail "a file is left where nothing was recorded"
# Processes that start before the end of the delay are recorded after it.
code_of "$spoor" record -q -F 499 -D 300 -o x.nettrace -- sh -c "'$target' spin 1500 & sleep 0.1; '${target}_reversed' spin 1400; wait"
code_of "$spoor" report --json x.nettrace
json out 'any(.processes[]; .name == "target")'
json out 'any(.processes[]; .name == "target_reversed")'

# The recorder runs with SCHED_BATCH, the programs that it starts with the policy of before. A policy that the user chose is not changed.
cat >policies.sh <<'end'
for pid in $PPID $$; do
	sed -n 's/^policy *: *//p' "/proc/$pid/sched"
done
end
if [ -r "/proc/$$/sched" ]; then
	code_of "$spoor" record -q -o x.nettrace -- sh policies.sh
	[ "$(tr '\n' ' ' <out)" = "3 0 " ] || fail "the recorder and its command have the policies $(tr '\n' ' ' <out), not 3 and 0"
	code_of chrt -i 0 "$spoor" record -q -o x.nettrace -- sh policies.sh
	[ "$(tr '\n' ' ' <out)" = "5 5 " ] || fail "under chrt -i they have $(tr '\n' ' ' <out), not 5 and 5"
else
	echo "this kernel does not show policies (/proc/PID/sched): not looked at"
fi

# With -p a command is not recorded: it sets the duration, and spoor does not return its exit code.
start burner "$target" spin 600000
code_of "$spoor" record -F 499 -p $burner -o x.nettrace sh -c 'sleep 2; exit 3'
expect_code 0 "a command that sets the time"
code_of "$spoor" report --json x.nettrace
json out '.recording.end_reason == "the command ended"'
json out "$spins"
json out 'all(.processes[]; .name != "sh")'
# The recording ends with its target, without waiting for the command.
start short "$target" spin 2000
code_of timeout 100 "$spoor" record -q -p $short -o x.nettrace sleep 600
expect_code 0 "a target that ends before the command that sets the duration"

# One thread.
record_until 1 'spin_here' -F 499 -t $burner
expect_code 0 "record -t"
code_of "$spoor" report --json x.nettrace
json out "$spins"
code_of "$spoor" record -q -t 0
expect_code 2 "a thread 0"
code_of "$spoor" record -q -t 4194303 -o y.nettrace
expect_code 1 "a thread that is not there"
has err '^no thread has the id 4194303'

# (Without the sessions that a recording of the whole machine opens in the programs of other tests.)
# -C: the report's share of busy CPUs counts only these.
if "$spoor" record -q -a --no-dotnet --duration 50ms -o x.nettrace 2>/dev/null; then
	cpu=$(sed 's/[-,].*//' /sys/devices/system/cpu/online)
	start bound taskset -c "$cpu" "$target" spin 600000
	code_of "$spoor" record -q -a --no-dotnet -C "$cpu" -F 499 --duration 2s -o x.nettrace
	expect_code 0 "record -C"
	code_of "$spoor" report x.nettrace
	has out ', 1 CPU, .*: CPU busy (9[0-9]|100) %'
	kill "$bound"
	# Only kernel code.
	code_of "$spoor" record -q -F 499 --all-kernel --duration 500ms -o x.nettrace -- dd if=/dev/zero of=/dev/null bs=64k count=200000
	code_of "$spoor" flame -o - -f folded x.nettrace
	has out ' [0-9]+$'
	has_no out '[; ]main[; ]'
fi
code_of "$spoor" record -q -F 499 --all-user --duration 300ms -p $burner -o x.nettrace
expect_code 0 "record --all-user"
code_of "$spoor" record -q -C 4000 -p $burner -o y.nettrace
expect_code 1 "a CPU that is not there"
has err '^cannot record CPU 4000: it is not online'
kill $burner

# SIGINT to spoor alone is passed to the command, and spoor returns its exit code.
cat >polite.sh <<'END'
trap 'echo heard; exit 9' INT
echo ready
while :; do sleep 0.1; done
END
start recorder "$spoor" record -q -o x.nettrace -- sh ./polite.sh >heard
until_true grep -q ready heard || fail "the command does not start"
kill -INT $recorder
wait $recorder && code=0 || code=$?
expect_code 9 "a command that answers SIGINT"
grep -q heard heard || fail "the command did not hear SIGINT"
# With TSan a program has one more thread from its first one on.
threads_left=1
! grep -q __tsan_init "$spoor" || threads_left=2
# only_waits PID: spoor has closed the recording, and only waits for the command.
only_waits() {
	! ls -l "/proc/$1/fd" | grep -q perf_event && [ "$(ls "/proc/$1/task" | wc -l)" -le $threads_left ]
}
# A command that ignores SIGINT and SIGTERM: spoor kills it at the third signal.
start recorder "$spoor" record -q -o x.nettrace -- sh -c 'trap "" INT TERM; echo ready; for each in $(seq 600); do sleep 0.1; done' >heard
until_true grep -q ready heard || fail "the command does not start"
kill -INT $recorder
until_true only_waits $recorder || fail "the recording is not closed"
for i in $(seq 150); do
	kill -INT $recorder 2>/dev/null || break
	! ended_process $recorder || break
	sleep 0.4
done
wait $recorder && code=0 || code=$?
expect_code 137 "a command that does not listen"
code_of "$spoor" report x.nettrace
expect_code 0 "the recording of a command that was killed"
# After two signals that another process sends, spoor ends within a second, and kills the command before that.
start recorder "$spoor" record -q -o x.nettrace -- sh -c 'trap "echo heard" INT; trap "" TERM; echo ready; for each in $(seq 600); do sleep 0.1; done' >heard
until_true grep -q ready heard || fail "the command does not start"
kill -INT $recorder
until_true grep -q heard heard || fail "the command does not get SIGINT"
until_true only_waits $recorder || fail "the recording is not closed"
sleep 0.5 # spoor counts copies of a signal within 200 ms as one
kill -INT $recorder
wait $recorder && code=0 || code=$?
expect_code 137 "a command that does not listen, after two signals"

# Several outputs, by their suffixes. Without a recording among them, no recording is left.
code_of "$spoor" record -o x.nettrace -o x.svg -o x.folded -o x.txt -o x.json -- "$target" spin 200
expect_code 0 "record with five outputs"
grep -q '</svg>' x.svg || fail "x.svg is no picture"
has x.folded 'spin_here [0-9]+$'
has x.txt 'spin_here'
json x.json "$spins"
mkdir only
code_of "$spoor" record -q -o only/x.svg -- "$target" spin 200
expect_code 0 "record into a picture"
[ "$(ls only)" = x.svg ] || fail "there is more than the picture: $(ls only)"
[ ! -s err ] || grep -q perf_event_paranoid err || fail "-q prints more than missing rights"

# A folder for all outputs.
code_of "$spoor" record -d here/ -- "$target" spin 200
expect_code 0 "record -d"
set -- here/*
[ $# = 1 ] && [ "$(echo "$1" | sed 's/[0-9]/9/g')" = here/99999999_999999 ] || fail "-d made $*"
[ "$(ls "$1" | tr '\n' ' ')" = 'flamegraph.svg folded_stacks.txt recording.nettrace report.txt ' ] || fail "-d made $(ls "$1")"
has "$1/report.txt" 'spin_here'
has "$1/folded_stacks.txt" 'spin_here [0-9]+$'

# The clock of perf events is that of the recording.
code_of "$spoor" report -v x.nettrace
has out "^clock of perf: the recording's own, to within [0-9.]+ [nu]s\$"

# A process that its control group throttles is reported, with the share. It has a twentieth of a CPU and uses all of it.
group=$(awk '$3 == "cgroup" && $4 ~ /(^|,)cpu(,|$)/ { print $2; exit }' /proc/mounts)
two=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ -n "$group" ] && mkdir "$group/spoor_test_$$" 2>/dev/null; then
	group=$group/spoor_test_$$
	echo 5000 >"$group/cpu.cfs_quota_us"
elif [ -n "$two" ] && grep -qw cpu "$two/cgroup.subtree_control" 2>/dev/null && mkdir "$two/spoor_test_$$" 2>/dev/null; then
	group=$two/spoor_test_$$
	echo "5000 100000" >"$group/cpu.max"
else
	skip "no control group with a CPU limit can be made here; the rest holds"
fi
clean_up_more() {
	until_true rmdir "$group"
}
start held "$target" spin 600000
if echo $held >"$group/cgroup.procs"; then
	for seconds in 2 10 40; do # on a busy machine the group may get less than its limit
		code_of "$spoor" record -q -p $held --duration ${seconds}s -o x.nettrace
		expect_code 0 "a process that is throttled"
		code_of "$spoor" report x.nettrace
		! grep -q '^control group' out || break
	done
	has out "^control group [^:]*/spoor_test_$$: limited to 0\\.05 CPUs, throttled [0-9.]+ % of the time \\(in [0-9]+ of [0-9]+ periods; its threads waited [0-9.]+ m?s\\)\$"
	code_of "$spoor" report --json x.nettrace
	json out 'any(.cpu_limits[]; .cpus == 0.05 and .periods > 0 and .throttled_periods > 0)'

	# Context switches have the time in which it was runnable; the limit is named as the reason.
	for seconds in 2 10 40; do
		code_of "$spoor" record -q --off-cpu -p $held --duration ${seconds}s -o x.nettrace
		expect_code 0 "switches of a process that is throttled"
		code_of "$spoor" report --thread-time --json x.nettrace
		! value out 'any(.processes[]; .cpu_limit.throttled_periods > 0)' | grep -q true || break
	done
	json out 'any(.processes[]; .cpu_limit.cpus == 0.05 and .cpu_limit.throttled_periods > 0 and .runnable_ns > .on_cpu_ns)'
	code_of "$spoor" report --thread-time x.nettrace
	has out '^its control group is limited to 0\.05 CPUs and was throttled in [0-9,]+ of [0-9,]+ periods'
fi
kill $held
wait $held 2>/dev/null || :
