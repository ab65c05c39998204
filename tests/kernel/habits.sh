#!/bin/sh
# What people of perf and dotnet-trace type: threads, CPUs, delay, one side of the kernel, a command that sets the time, several outputs, a folder.
. "$(dirname "$(realpath "$0")")/prelude"

# No -- is needed; what follows the command is its own.
code_of "$spoor" record -g -F 499 -o x.nettrace "$target" spin 300
expect_code 0 "record COMMAND without --"
paste_next err
has step.out ' spin_here '
code_of "$spoor" report -i x.nettrace --json
has out '"name":"spin_here"'

# perf's orders of a report.
code_of "$spoor" report -i x.nettrace --no-children --sort comm,dso,sym --percent-limit 5
expect_code 0 "report --sort comm,dso,sym"
has out '^ +self  process  module  function$'
has out '^ *[0-9.]+ %  target   target  spin_here$'
has_no out '  main$'
code_of "$spoor" report x.nettrace --sort total,dso
has out '^ *(9[0-9.]+|100.0) % +(9[0-9.]+|100.0) %  target$'
code_of "$spoor" report x.nettrace --sort pid --json
has out '"groups":\[{"process":"target","pid":[0-9]+,"self_ns":[0-9]+,'

# -D: only what comes after it.
code_of "$spoor" record -q -F 499 -D 400 -o x.nettrace -- sh -c "'$target' spin 300; sleep 0.3; '${target}_reversed' spin 300"
expect_code 0 "record -D"
code_of "$spoor" report --json x.nettrace
has out '"name":"target_reversed"'
has_no out '"name":"target"'
rm x.nettrace
code_of "$spoor" record -q -D 5s -o x.nettrace -- true
expect_code 1 "a command that ends before the delay is over"
has err '^nothing was recorded: the command ended before the delay was over'
[ ! -e x.nettrace ] || fail "a file is left where nothing was recorded"
# What began before the delay was over, and what that started, is recorded.
code_of "$spoor" record -q -F 499 -D 300 -o x.nettrace -- sh -c "'$target' spin 900 & sleep 0.1; '${target}_reversed' spin 800; wait"
code_of "$spoor" report --json x.nettrace
has out '"name":"target"'
has out '"name":"target_reversed"'

# The recorder pushes nobody off a CPU (SCHED_BATCH), the programs it starts are scheduled as before. A policy that was chosen stays.
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

# Beside -p a command only sets the time, and its code is its own business.
start burner "$target" spin 60000
code_of "$spoor" record -F 499 -p $burner -o x.nettrace sh -c 'sleep 0.5; exit 3'
expect_code 0 "a command that sets the time"
code_of "$spoor" report --json x.nettrace
has out '"end_reason":"the command ended"'
has out '"name":"spin_here"'
has_no out '"name":"sh"'
# The target's end is the end; the command that would have told it is not waited for.
start short "$target" spin 700
code_of timeout 20 "$spoor" record -q -p $short -o x.nettrace sleep 60
expect_code 0 "a target that ends before the command that sets the time"

# One thread.
code_of "$spoor" record -q -F 499 --duration 500ms -t $burner -o x.nettrace
expect_code 0 "record -t"
code_of "$spoor" report --json x.nettrace
has out '"name":"spin_here"'
code_of "$spoor" record -q -t 0
expect_code 2 "a thread 0"
code_of "$spoor" record -q -t 4194303 -o y.nettrace
expect_code 1 "a thread that is not there"
has err '^no thread has the id 4194303'

# Some CPUs: what the report calls busy is of these.
if "$spoor" record -q -a --duration 50ms -o x.nettrace 2>/dev/null; then
	cpu=$(sed 's/[-,].*//' /sys/devices/system/cpu/online)
	start bound taskset -c "$cpu" "$target" spin 60000
	code_of "$spoor" record -q -a -C "$cpu" -F 499 --duration 700ms -o x.nettrace
	expect_code 0 "record -C"
	code_of "$spoor" report x.nettrace
	has out ', 1 CPU, .*: CPU busy (9[0-9]|100) %'
	kill "$bound"
	# One side of the border.
	code_of "$spoor" record -q -F 499 --all-kernel --duration 500ms -o x.nettrace -- dd if=/dev/zero of=/dev/null bs=64k count=200000
	code_of "$spoor" flame -o - -f folded x.nettrace
	has_no out '[; ]main[; ]'
fi
code_of "$spoor" record -q -F 499 --all-user --duration 300ms -p $burner -o x.nettrace
expect_code 0 "record --all-user"
code_of "$spoor" record -q -C 4000 -p $burner -o y.nettrace
expect_code 1 "a CPU that is not there"
has err '^cannot record CPU 4000: it is not online'
kill $burner

# Ctrl-C, sent to us alone, is the command's too, and its code is ours.
cat >polite.sh <<'END'
trap 'echo heard; exit 9' INT
echo ready
while :; do sleep 0.1; done
END
start recorder "$spoor" record -q -o x.nettrace -- sh ./polite.sh >heard
until_true grep -q ready heard || fail "the command does not start"
sleep 0.3
kill -INT $recorder
wait $recorder && code=0 || code=$?
expect_code 9 "a command that answers SIGINT"
grep -q heard heard || fail "the command did not hear SIGINT"
# One that does not listen: the third time is the last.
start recorder "$spoor" record -q -o x.nettrace -- sh -c 'trap "" INT TERM; echo ready; while :; do sleep 0.1; done' >heard
until_true grep -q ready heard || fail "the command does not start"
for i in 1 2 3 4; do
	sleep 0.4
	kill -INT $recorder 2>/dev/null
done
wait $recorder && code=0 || code=$?
expect_code 137 "a command that does not listen"
code_of "$spoor" report x.nettrace
expect_code 0 "the recording of a command that was killed"
# Two signals that another process sends are enough: the program ends within a second, and the command before it.
start recorder "$spoor" record -q -o x.nettrace -- sh -c 'trap "" INT TERM; echo ready; while :; do sleep 0.1; done' >heard
until_true grep -q ready heard || fail "the command does not start"
sleep 0.3
kill -INT $recorder
sleep 0.5
kill -INT $recorder
wait $recorder && code=0 || code=$?
expect_code 137 "a command that does not listen, after two signals"

# Several outputs, decided by their suffix; without a recording among them none is left.
code_of "$spoor" record -o x.nettrace -o x.svg -o x.folded -o x.txt -o x.json -- "$target" spin 200
expect_code 0 "record with five outputs"
grep -q '</svg>' x.svg || fail "x.svg is no picture"
has x.folded 'spin_here [0-9]+$'
has x.txt 'spin_here'
has x.json '"name":"spin_here"'
mkdir only
code_of "$spoor" record -q -o only/x.svg -- "$target" spin 200
expect_code 0 "record into a picture"
[ "$(ls only)" = x.svg ] || fail "beside the picture stands: $(ls only)"
[ ! -s err ] || grep -q perf_event_paranoid err || fail "-q says more than what is missing"

# The folder.
code_of "$spoor" record -d here/ -- "$target" spin 200
expect_code 0 "record -d"
set -- here/*
[ $# = 1 ] && [ "$(echo "$1" | sed 's/[0-9]/9/g')" = here/99999999_999999 ] || fail "-d made $*"
[ "$(ls "$1" | tr '\n' ' ')" = 'flamegraph.svg folded_stacks.txt recording.nettrace report.txt ' ] || fail "-d made $(ls "$1")"
has "$1/report.txt" 'spin_here'
has "$1/folded_stacks.txt" 'spin_here [0-9]+$'

# The clocks were measured, and agree.
code_of "$spoor" report -v x.nettrace
has out "^clock of perf: the recording's own, to within [0-9.]+ [nu]s\$"

# A process that its control group throttles: told, with the share. A twentieth of a CPU for a loop that wants one.
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
	rmdir "$group"
}
start held "$target" spin 60000
if echo $held >"$group/cgroup.procs"; then
	code_of "$spoor" record -q -p $held --duration 2s -o x.nettrace
	code_of "$spoor" report x.nettrace
	has out "^control group [^:]*/spoor_test_$$: limited to 0\\.05 CPUs, throttled [0-9.]+ % of the time \\(in [0-9]+ of [0-9]+ periods; its threads waited [0-9.]+ m?s\\)\$"
	code_of "$spoor" report --json x.nettrace
	has out '"cpus":0\.05,"periods":[0-9]+,"throttled_periods":[1-9][0-9]*,'
fi
kill $held
wait $held 2>/dev/null || :
