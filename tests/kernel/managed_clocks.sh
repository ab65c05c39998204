#!/bin/sh
# Where no perf event may be opened, as below a container's seccomp filter: CPU time by the threads' clocks, stacks by the runtimes that sample them, and it is said.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"
hostile=$(dirname "$spoor")/tests/hostile

"$hostile" no-perf EPERM true || skip "no seccomp filter can be set here"

refused() {
	code_of timeout 60 "$hostile" no-perf "$@"
}

refused EPERM "$spoor" doctor
has out "^CPU time by the threads' clocks +yes +spoor record goes by these"

begin posed threads 600000
begin burner burn 600000
start native "$target" spin 600000
sleep 1 # their beginnings are over

# Three of them, and for ENOSYS as for EPERM.
for error in EPERM ENOSYS; do
	before_posed=$(used $posed) before_burner=$(used $burner) before_native=$(used $native)
	refused $error "$spoor" record -p "$posed,$burner,$native" --duration 3s -o $error.nettrace
	after_posed=$(used $posed) after_burner=$(used $burner) after_native=$(used $native)
	expect_code 0 "refused with $error"
	has err '^cannot sample anything: perf_event_open is forbidden here'
	has err "instead the threads' CPU clocks are read, and .NET runtimes sample their managed stacks, stopping their threads for it: no native and kernel frames, and no stacks of other programs"
	[ "$(grep -c 'CPU clocks are read' err)" = 1 ] || fail "it is said more than once"
	has err '^recording .* by the threads'"'"' CPU clocks'
	"$spoor" report --json $error.nettrace >json || fail "no report"
	has json '"weighing":"cpu_clocks"'
	# What each of them used, by its own clock: what it used while it was being attached to and let go of is on top of that.
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

# What computes is on top, by its name; who waits is not there. (Who naps for two milliseconds between computing is: a sampler in step with it sees the naps alone.)
"$spoor" report -p $burner EPERM.nettrace >report || fail "no report"
top_row report >top
has top 'Hot\.Burn\(int\) +Managed\.dll'
folded EPERM.nettrace folds
at_least folds 3 'Posed\.Spin\(\);Hot\.Burn\(int\)'
has_no folds 'Posed\.(Park|Hold|Sleep|Read)\(\)'
# A program without .NET: its time, and no stack.
[ "$(of_process json $native without_stack_ns)" = "$(of_process json $native cpu_ns)" ] || fail "stacks of a native program"

# A command from its beginning to its end, and what it starts: all it used, though nobody tells of processes.
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
# The shell's second line of times is what its children used. Their last moments may be counted for the shell.
most=$(awk '/^[0-9]+m/ && ++n == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); print int(1000 * (60 * u[1] + u[2] + 60 * s[1] + s[2])) }' out)
got=$(tr '{' '\n' <json | grep -E '"name":"(sh|target)",.*"cpu_ns"' | grep -oE '"cpu_ns":[0-9]+' | cut -d: -f2 | awk '{ n += $1 } END { print int(n / 1000000) }')
[ $got -le $((most + 150)) ] && [ $got -ge $((most - 50)) ] || fail "what the command started: $got ms in the report, $most ms by the shell"
tr '{' '\n' <json | grep -qE '"name":"target",.*"cpu_ns"' || fail "what the command started is not there"
code_of "$spoor" report -n targte command.nettrace
has err "^no process of this recording is 'targte'; did you mean 'target'\?\.?$"

# Many that live too shortly to be seen: what they used is there all the same.
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
got=$(tr '{' '\n' <json | grep -oE '"cpu_ns":[0-9]+' | head -n 1 | cut -d: -f2)
got=$((got / 1000000))
[ $got -le $((most * 120 / 100 + 100)) ] && [ $got -ge $((most * 80 / 100 - 50)) ] || fail "short lives: $got ms in the report, $most ms by the shell"

# The whole machine, without a word to any runtime: time by process and thread.
refused EPERM "$spoor" record --no-dotnet --duration 1500ms -o machine.nettrace
expect_code 0 "the machine"
has err "instead the threads' CPU clocks are read: CPU time by process and thread, and no stacks"
"$spoor" report --json machine.nettrace >json
[ "$(of_process json $native cpu_ns)" -gt 50000000 ] || fail "the native program is not there"
[ "$(of_process json $burner without_stack_ns)" = "$(of_process json $burner cpu_ns)" ] || fail "stacks that nobody asked for"

"$spoor" report machine.nettrace >report || fail "no report"
has report "^CPU time by each thread's CPU clock; no stacks"

# One thread alone.
spinner=$(grep -lx Spinner /proc/$posed/task/*/comm | cut -d/ -f5)
refused EPERM "$spoor" record -t "$spinner" --duration 1s -z -o thread.nettrace.zst
expect_code 0 "a thread: $(cat err)"
folded thread.nettrace.zst folds
at_least folds 3 'Posed\.Spin\(\);Hot\.Burn\(int\)'
has_no folds 'Posed\.Want'

# What only perf events can do fails in words.
refused EPERM "$spoor" record -p $burner -C 0 --duration 300ms -o x.nettrace
expect_code 3 "one CPU"
has err '^cannot sample'
[ ! -e x.nettrace ] || fail "a file is left"
refused EPERM "$spoor" record -p $burner --all-kernel --duration 300ms -o x.nettrace
expect_code 3 "the kernel only"

# Killed: no session is left behind in the program, which goes on.
start killed "$hostile" no-perf EPERM "$spoor" record -q -p $burner -o killed.nettrace 2>killed.err
until_true test -s killed.nettrace || fail "the recording does not begin"
sleep 1
kill -9 $killed
wait $killed 2>/dev/null
sleep 1
for i in $(seq 64); do
	"$spoor" trace -q -p $burner --providers Nothing-Says-This --rundown false --duration 3s -o place$i.nettrace 2>place$i.err &
	eval "place_$i=$!"
done
for i in $(seq 64); do
	eval "wait \$place_$i" || fail "a place is not free: $(cat place$i.err)"
done
exit 0
