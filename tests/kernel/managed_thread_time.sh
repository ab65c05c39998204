#!/bin/sh
# The runtime's sampler in spoor trace: the threads' CPU clocks stand beside its samples, so that the report shows CPU time and no thread that waits; without them it is
# thread time, and says so.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

begin posed threads 600000
begin burner burn 600000
sleep 1

before_posed=$(used $posed) before_burner=$(used $burner)
code_of timeout 60 "$spoor" trace -p "$posed,$burner" --profile dotnet-sampled-thread-time --duration 3s -o cpu.nettrace
after_posed=$(used $posed) after_burner=$(used $burner)
expect_code 0 "a trace: $(cat err)"
"$spoor" report cpu.nettrace >report || fail "no report"
has report "^managed stacks sampled by the runtime, weighted by each thread's CPU clock; no native frames"
has report '^  CPU s '
"$spoor" report --json cpu.nettrace >json
has json '"weighing":"cpu_clocks"'
# The rundown costs something too, and comes when clocks are no longer read.
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

# The samples themselves are as the runtime made them: of every thread, those that wait too.
"$spoor" events cpu.nettrace --provider '*SampleProfiler' >events || fail "no events"
[ "$(awk '{ print $2 }' events | grep "^$posed/" | sort -u | wc -l)" -ge 10 ] || fail "samples of some threads are missing"
"$spoor" events cpu.nettrace --provider Spoor --event ThreadClock >clocks || fail "no clocks"
has clocks "$burner/$burner  Spoor/ThreadClock  RunNs=[0-9]+ Rest=false"

# As the runtime sends it: no clocks, and it says what it is.
code_of timeout 60 "$spoor" trace -p $posed --profile dotnet-sampled-thread-time --duration 1s --raw -o raw.nettrace
expect_code 0 "a raw trace: $(cat err)"
raw=$(ls raw*.nettrace)
"$spoor" report "$raw" >report || fail "no report"
has report '^thread time, not CPU time: '
has report '^thread s '
has_no report 'CPU busy|CPU s'
folded "$raw" folds
at_least folds 10 'Posed\.Park\(\)'

# Without samples nobody asks for clocks.
code_of timeout 60 "$spoor" trace -p $posed --profile dotnet-common --duration 1s -o common.nettrace
expect_code 0 "a trace without samples"
"$spoor" events common.nettrace --provider Spoor --event ThreadClock >clocks
[ ! -s clocks ] || fail "clocks that nothing asked for"
exit 0
