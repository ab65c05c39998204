#!/bin/sh
# Without rights spoor record records user code of the user's own processes, and prints one message about the rest.
. "$(dirname "$(realpath "$0")")/../prelude"

is_root || skip "only root can take rights away"
command -v setpriv >/dev/null || skip "no setpriv here"
knob=/proc/sys/kernel/perf_event_paranoid
before=$(cat $knob)
clean_up_more() {
	echo "$before" >$knob 2>/dev/null
}
# shellcheck disable=SC2016
nobody() {
	setpriv --reuid=64999 --regid=64999 --clear-groups --inh-caps=-all --no-new-privs "$@"
}
cp "$spoor" ./spoor && cp "$target" ./target && chmod 755 . spoor target
nobody ./spoor --version >/dev/null 2>err || skip "another user cannot run a program in $scratch"
mkdir own && chmod 777 own
"$target" spin 600000 &
root_pid=$!
started="$started $root_pid"

spins='any(.processes[].functions[]; .name == "spin_here")'
no_kernel='all(.processes[].functions[]; .kind != "kernel")'

one_remedy() {
	has err 'sudo'
	[ "$(grep -c 'CAP_PERFMON' err)" -le 1 ] || fail "the message is printed more than once"
}

for level in 0 1 2 3; do
	echo $level 2>/dev/null >$knob || break
	[ "$(cat $knob)" = $level ] || break

	code_of nobody ./spoor record -F 499 --duration 300ms -a -o own/all.$level
	if grep -q "the threads' CPU clocks are read" err; then # level 3 of Debian's kernels: no perf events
		expect_code 0 "-a at level $level"
		one_remedy
	elif [ $level -ge 1 ]; then
		expect_code 3 "-a at level $level"
		has err "perf_event_paranoid is $level"
		one_remedy
		[ ! -s own/all.$level ] || fail "a file is left at level $level"
	else
		expect_code 0 "-a at level $level"
	fi

	code_of nobody ./spoor record -F 499 -o own/cmd.$level -- ./target spin 300
	if [ $level -le 2 ]; then
		expect_code 0 "a command at level $level"
		# Without the right to sample CPUs, children with less CPU time than a period have no sample. A message says so.
		if [ $level -ge 1 ]; then
			code_of nobody ./spoor record -o own/short.$level -- ./target churn 300 2 ./target
			expect_code 0 "short children at level $level"
			has err ' of [0-9.]+ CPU s not sampled'
			has_no err 'nothing lost'
			nobody ./spoor report own/short.$level >out
			has out 'CPU s have no sample: .* less than a sampling period'
		fi
		code_of nobody ./spoor report --json own/cmd.$level
		json out "$spins"
		if [ $level = 2 ]; then
			json out "$no_kernel"
			nobody ./spoor record -o own/cmd.$level -- ./target spin 100 2>err
			[ "$(grep -c 'perf_event_paranoid' err)" = 1 ] || fail "the missing kernel frames are not reported exactly once"
			one_remedy
		fi
	elif grep -q "the threads' CPU clocks are read" err; then # a kernel with Debian's level 3
		expect_code 0 "a command at level 3"
		has err "perf_event_paranoid is 3"
		one_remedy
	else
		expect_code 0 "a command at level 3 on a kernel that knows no level 3"
	fi
done
echo 2 >$knob 2>/dev/null || skip "perf_event_paranoid cannot be set here"

# A process of another user is refused with a message.
code_of nobody ./spoor record --duration 300ms -p $root_pid -o own/x
expect_code 3 "another user's process"
has err "^cannot record process $root_pid: it belongs to user 0"
has err 'sudo'
[ ! -e own/x ] || fail "a file is left"

# No target and no rights: the processes of this user are recorded.
setpriv --reuid=64999 --regid=64999 --clear-groups --inh-caps=-all --no-new-privs ./target spin 600000 & # not the function, whose id would be that of a shell
own_pid=$!
started="$started $own_pid"
is_nobodys() {
	[ "$(stat -c %u /proc/$own_pid)" = 64999 ] && grep -q target /proc/$own_pid/comm
}
until_true is_nobodys || fail "the program of the other user does not start"
cd own || exit 1
for seconds in 1 5 20; do
	code_of nobody ../spoor record -F 499 --duration ${seconds}s -o own.nettrace
	expect_code 0 "no target at level 2"
	cp err said
	! nobody ../spoor report own.nettrace 2>/dev/null | grep -q spin_here || break
done
has said "perf_event_paranoid is 2"
[ "$(grep -c 'perf_event_paranoid' said)" = 1 ] || fail "the missing right is reported more than once"
code_of nobody ../spoor report --json own.nettrace
json out "$spins"
json out 'all(.processes[]; .pid != ($a | tonumber))' $root_pid
json out "$no_kernel"
code_of nobody ../spoor report own.nettrace
has out 'perf_event_paranoid'
exit 0
