#!/bin/sh
# Where perf events are forbidden, as by a container's seccomp filter, spoor record reads the threads' CPU clocks, gets stacks from .NET runtimes, and prints a message.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
hostile=$(dirname "$spoor")/tests/hostile

"$hostile" no-perf EPERM true || skip "no seccomp filter can be set here"

refused() {
	code_of timeout 250 "$hostile" no-perf "$@"
}

refused EPERM "$spoor" doctor
has out "^CPU time by the threads' clocks +yes +spoor record goes by these"

begin posed threads 600000
begin burner burn 600000
start native "$target" spin 600000
until_true used_more $posed 0 300 && until_true used_more $burner 0 500 || fail "the programs get no CPU time"

# recorded_enough: the recording has most of the CPU time of each process, and samples of a thread that computes and naps.
recorded_enough() {
	"$spoor" report --json $error.nettrace >json && "$spoor" flame $error.nettrace --format folded -o - >folds 2>/dev/null || return 1
	[ "$(frames folds 'Posed\.Spin\(\);Hot\.Burn\(int\)')" -ge 3 ] || return 1
	for one in posed burner native; do
		eval "pid=\$$one most=\$((after_$one - before_$one))"
		[ $(($(of_process json "$pid" cpu_ns) / 1000000)) -ge $((most * 70 / 100 - 20)) ] || return 1
	done
}

# Three processes, with both error codes.
for error in EPERM ENOSYS; do
	# A process uses CPU time while spoor attaches and detaches, too; in a longer recording that matters less.
	for seconds in 3 12 40; do
		before_posed=$(used $posed) before_burner=$(used $burner) before_native=$(used $native)
		refused $error "$spoor" record -p "$posed,$burner,$native" --duration ${seconds}s -o $error.nettrace
		after_posed=$(used $posed) after_burner=$(used $burner) after_native=$(used $native)
		! recorded_enough || break
	done
	expect_code 0 "refused with $error"
	has err '^cannot sample anything: perf_event_open is forbidden here'
	has err "instead the threads' CPU clocks are read, and .NET runtimes sample their managed stacks, stopping their threads for it: no native and kernel frames, and no stacks of other programs"
	[ "$(grep -c 'CPU clocks are read' err)" = 1 ] || fail "the message is printed more than once"
	has err '^recording .* by the threads'"'"' CPU clocks'
	"$spoor" report --json $error.nettrace >json || fail "no report"
	json json '.weighing == "cpu_clocks"'
	for one in posed burner native; do
		eval "pid=\$$one most=\$((after_$one - before_$one))"
		got=$(($(of_process json "$pid" cpu_ns) / 1000000))
		[ $got -le $((most + 20)) ] && [ $got -ge $((most * 70 / 100 - 20)) ] || fail "$one ($error): $got ms in the report, $most ms in /proc"
	done
	"$spoor" report $error.nettrace >report || fail "no report"
	has report "^managed stacks sampled by the runtime, weighted by each thread's CPU clock; no native frames"
	has report 'cannot sample anything'
	has report 'nothing lost'
done

# The function that computes is first; threads that wait have no samples. (A thread that naps for 2 ms has some: the sampler may see only its naps.)
"$spoor" report -p $burner EPERM.nettrace >report || fail "no report"
top_row report >top
has top 'Hot\.Burn\(int\) +Managed\.dll'
folded EPERM.nettrace folds
at_least folds 3 'Posed\.Spin\(\);Hot\.Burn\(int\)'
has_no folds 'Posed\.(Park|Hold|Sleep|Read)\(\)'
# A program without .NET has CPU time and no stacks.
[ "$(of_process json $native without_stack_ns)" = "$(of_process json $native cpu_ns)" ] || fail "stacks of a native program"

# A command and its children have all their CPU time, although there are no events of processes.
cat >command.sh <<SH
"$target" spin 1000
times
dotnet '$app' burn 1500
SH
refused EPERM "$spoor" record -o command.nettrace -- sh command.sh
expect_code 0 "a command: $(cat err)"
"$spoor" report -n Managed command.nettrace >report || fail "no report"
top_row report >top
has top 'Hot\.Burn\(int\) +Managed\.dll'
"$spoor" report --json command.nettrace >json
# The second line of the shell's times is the CPU time of its children. Their exit may be counted for the shell.
most=$(awk '/^[0-9]+m/ && ++n == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); print int(1000 * (60 * u[1] + u[2] + 60 * s[1] + s[2])) }' out)
got=$(value json '[.processes[] | select(.name == "sh" or .name == "target") | .cpu_ns] | add / 1000000 | floor')
[ $got -le $((most * 105 / 100 + 150)) ] && [ $got -ge $((most * 80 / 100 - 50)) ] || fail "what the command started: $got ms in the report, $most ms by the shell"
json json 'any(.processes[]; .name == "target")'
code_of "$spoor" report -n targte command.nettrace
has err "^no process of this recording is 'targte'; did you mean 'target'\?\.?$"

# Many processes that end before they are read: their CPU time is counted.
cat >short.sh <<SH
i=0
while [ \$i -lt 60 ]; do
	"$target" spin 15
	i=\$((i + 1))
done
times
SH
refused EPERM "$spoor" record -o short.nettrace -- sh short.sh
expect_code 0 "short lives: $(cat err)"
most=$(awk '/^[0-9]+m/ && ++n == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); print int(1000 * (60 * u[1] + u[2] + 60 * s[1] + s[2])) }' out)
"$spoor" report --json short.nettrace >json
got=$(value json '.cpu_ns / 1000000 | floor')
[ $got -le $((most * 120 / 100 + 100)) ] && [ $got -ge $((most * 80 / 100 - 50)) ] || fail "short lives: $got ms in the report, $most ms by the shell"

# The whole machine, without requests to runtimes: CPU time by process and thread.
refused EPERM "$spoor" record --no-dotnet --duration 4s -o machine.nettrace
expect_code 0 "the machine"
has err "instead the threads' CPU clocks are read: CPU time by process and thread, and no stacks"
"$spoor" report --json machine.nettrace >json
[ "$(of_process json $native cpu_ns)" -gt 50000000 ] || fail "the native program is not there"
[ "$(of_process json $burner without_stack_ns)" = "$(of_process json $burner cpu_ns)" ] || fail "there are stacks with --no-dotnet"

"$spoor" report machine.nettrace >report || fail "no report"
has report "^CPU time by each thread's CPU clock; no stacks"

# One thread.
spinner=$(grep -lx Spinner /proc/$posed/task/*/comm | cut -d/ -f5)
refused EPERM "$spoor" record -t "$spinner" --duration 5s -z -o thread.nettrace.zst
expect_code 0 "a thread: $(cat err)"
folded thread.nettrace.zst folds
at_least folds 3 'Posed\.Spin\(\);Hot\.Burn\(int\)'
has_no folds 'Posed\.Want'

# Options that need perf events fail with a message.
refused EPERM "$spoor" record -p $burner -C 0 --duration 300ms -o x.nettrace
expect_code 3 "one CPU"
has err '^cannot sample'
[ ! -e x.nettrace ] || fail "a file is left"
refused EPERM "$spoor" record -p $burner --all-kernel --duration 300ms -o x.nettrace
expect_code 3 "the kernel only"

# Killed: no session is left in the program, which continues.
start killed "$hostile" no-perf EPERM "$spoor" record -q -p $burner -o killed.nettrace 2>killed.err
until_true has_session $burner || fail "the recording opens no session: $(cat killed.err)"
kill -9 $killed
wait $killed 2>/dev/null
until_true no_session $burner || fail "a session is left: $(sessions $burner)"
exit 0
