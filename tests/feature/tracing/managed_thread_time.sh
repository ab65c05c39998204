#!/bin/sh
# spoor trace with the runtime's sampler also reads the threads' CPU clocks, so that the report shows CPU time and no waiting threads. Without the clocks it shows thread time
# and a message.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

begin posed threads 600000
begin burner burn 600000
until_true used_more $posed 0 300 && until_true used_more $burner 0 500 || fail "the programs get no CPU time"

# enough: the trace has most of the CPU time, and samples of a thread that computes and naps.
enough() {
	"$spoor" report --json cpu.nettrace >json || return 1
	folded cpu.nettrace folds
	[ "$(frames folds 'Posed\.Spin\(\);Hot\.Burn\(int\)')" -ge 3 ] || return 1
	for one in posed burner; do
		eval "pid=\$$one most=\$((after_$one - before_$one))"
		[ $(($(of_process json "$pid" cpu_ns) / 1000000)) -ge $((most * 60 / 100 - 20)) ] || return 1
	done
}
# The programs use CPU time while spoor attaches and detaches, too; in a longer trace that matters less.
for seconds in 3 12 40; do
	before_posed=$(used $posed) before_burner=$(used $burner)
	code_of timeout 250 "$spoor" trace -p "$posed,$burner" --profile dotnet-sampled-thread-time --duration ${seconds}s -o cpu.nettrace
	after_posed=$(used $posed) after_burner=$(used $burner)
	! enough || break
done
expect_code 0 "a trace: $(cat err)"
"$spoor" report cpu.nettrace >report || fail "no report"
has report "^managed stacks sampled by the runtime, weighted by each thread's CPU clock; no native frames"
has report '^  CPU s '
"$spoor" report --json cpu.nettrace >json
json json '.weighing == "cpu_clocks"'
for one in posed burner; do
	eval "pid=\$$one most=\$((after_$one - before_$one))"
	got=$(($(of_process json "$pid" cpu_ns) / 1000000))
	[ $got -le $((most + 20)) ] && [ $got -ge $((most * 60 / 100 - 20)) ] || fail "$one: $got ms in the report, $most ms in /proc"
done
"$spoor" report -p $burner cpu.nettrace | top_row >top
has top 'Hot\.Burn\(int\) +Managed\.dll'
folded cpu.nettrace folds
at_least folds 3 'Posed\.Spin\(\);Hot\.Burn\(int\)'
has_no folds 'Posed\.(Park|Hold|Sleep|Read)\(\)'
"$spoor" flame cpu.nettrace -o cpu.svg 2>err || fail "no picture"
has cpu.svg 'samples, [0-9.]+ CPU s'

# The samples are those of the runtime: of every thread, also of threads that wait.
"$spoor" events cpu.nettrace --provider '*SampleProfiler' >events || fail "no events"
[ "$(awk '{ print $2 }' events | grep "^$posed/" | sort -u | wc -l)" -ge 10 ] || fail "samples of some threads are missing"
"$spoor" events cpu.nettrace --provider Spoor --event ThreadClock >clocks || fail "no clocks"
has clocks "$burner/$burner  Spoor/ThreadClock  RunNs=[0-9]+ Rest=false"

# --raw: no clocks, and a message that this is thread time.
code_of timeout 250 "$spoor" trace -p $posed --profile dotnet-sampled-thread-time --duration 4s --raw -o raw.nettrace
expect_code 0 "a raw trace: $(cat err)"
raw=$(ls raw*.nettrace)
"$spoor" report "$raw" >report || fail "no report"
has report '^thread time, not CPU time: '
has report '^thread s '
has_no report 'CPU busy|CPU s'
folded "$raw" folds
at_least folds 10 'Posed\.Park\(\)'

# Without samples there are no clocks.
code_of timeout 250 "$spoor" trace -p $posed --profile dotnet-common --duration 3s -o common.nettrace
expect_code 0 "a trace without samples"
"$spoor" events common.nettrace --provider Spoor --event ThreadClock >clocks
[ ! -s clocks ] || fail "there are clocks without samples"
exit 0
