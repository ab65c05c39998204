#!/bin/sh
# The analyses of spoor report have the exceptions and bytes that .NET programs themselves count, with the methods where the events have stacks, and name what a recording lacks.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

managed=$app
program answered
answered=$program

# begin_answered NAME mode N: begin, of the program answered.
begin_answered() {
	app=$answered
	begin "$@"
	app=$managed
}

# answer OPTION FILE: makes FILE.json and FILE.text of an analysis.
answer() {
	"$spoor" report "--$1" --json "$2.nettrace" >"$2.json" 2>err || fail "report --$1 --json of $2"
	"$spoor" report "--$1" "$2.nettrace" >"$2.text" 2>err || fail "report --$1 of $2"
}

# work WORD: lets the program work until it prints the word.
work() {
	touch go
	until_true grep -q "$1" ready.one || fail "the program does not end its work"
}

ended() {
	kill -INT $recorder
	wait $recorder || fail "the recording $1 failed: $(cat "$1.nettrace.err")"
	touch end
	wait $one || fail "the program did not end well"
	rm -f go end
}

# Exceptions with stacks, from a trace.
one=''
begin one events 500
record_opened 1 stacks.nettrace trace -p $one --clrevents exception+gc
work thrown
ended stacks
answer exceptions stacks
grep -q 'thrown 500' ready.one || fail "the program threw $(cat ready.one)"
json stacks.json '.processes | length == 1'
json stacks.json '.processes[0] | .exception_count == 500 and ([.timeline.amounts[]] | add) == 500'
json stacks.json '.processes[0].types == [{ "type": "System.InvalidOperationException", "count": 500 }]'
json stacks.json '.processes[0].exceptions | all(.method == "Told.Throw()" and .module == "Managed.dll" and (.stack | any(. == "Told.Throw()")))'
json stacks.json '[.processes[0].exceptions[] | select(.message | test("^told [0-9]+$")) | .count] | add == 500'
json stacks.json '[.processes[0].exceptions[] | select(.stack | any(test("Told.Run.lambda"))) | .count] | add == 50'
has stacks.text '^Managed \([0-9]+\), \.NET [0-9.]+: 500 exceptions in '
has stacks.text '^ +500 +100\.0 %  System\.InvalidOperationException$'
has stacks.text '^ +in Told\.Throw\(\)  Managed\.dll$'
has_no stacks.text 'no stacks'
"$spoor" report --gc stacks.nettrace >gc.text
has gc.text '^  induced by +Told\.Run\(int\)  Managed\.dll: [0-9]+$'
"$spoor" report --gc --json stacks.nettrace >gc.json
json gc.json '.processes[0] | ([.triggers[] | select(.reason == "induced" and .method == "Told.Run(int)") | .count] | add) == 45'
# The summary of the plain report has both.
"$spoor" report stacks.nettrace >summary.text 2>err || fail "report of stacks"
has summary.text '^--exceptions +500, [0-9.,]+ a second: System\.InvalidOperationException 500 in Told\.Throw$'
has summary.text '^--gc +[0-9]+ collections, paused '
"$spoor" report --tree stacks.nettrace >tree.text 2>err || fail "report --tree of stacks"
has_no tree.text '^--gc'
code_of "$spoor" report --exceptions -m Nothing.dll stacks.nettrace
expect_code 1 "exceptions of a module without any"
"$spoor" report --exceptions --json -m Managed stacks.nettrace >module.json
json module.json '.processes[0].exception_count == 500'

# Of a recording, which takes exceptions without stacks.
begin one events 300
record_opened 1 plain.nettrace record -p $one
work thrown
ended plain
answer exceptions plain
json plain.json '.processes[0] | .exception_count == 300 and all(.exceptions[]; .stack == null and .method == null)'
has plain.text '^ +300 +100\.0 %  System\.InvalidOperationException$'
has plain.text 'the events have no stacks'

# And with stacks.
begin one events 200
record_opened 1 recorded.nettrace record -p $one --event-stacks
work thrown
ended recorded
answer exceptions recorded
json recorded.json '.processes[0] | .exception_count == 200 and all(.exceptions[]; .method == "Told.Throw()")'
has_no recorded.text 'no stacks'

# Allocations, by each source: the sum is within 2 % (ticks, which are exact but for the last) or six standard errors (samples) of what the runtime counted.
allocated() {
	begin_answered one allocate 100
	record_opened 1 "$1.nettrace" trace -p $one --providers "$2"
	work allocated
	ended "$1"
	answer alloc "$1"
	bytes=$(sed -n 's/^allocated //p' ready.one)
	echo "$1: $(value "$1.json" '.processes[0].allocated_bytes') of $bytes bytes by $(value "$1.json" '.processes[0].events') $(value "$1.json" '.processes[0].source')"
	json "$1.json" '.processes[0] | .source == $a and .allocated_bytes == .small_bytes + .large_bytes + .pinned_bytes' "$3"
	json "$1.json" '.processes[0] | ([.timeline.amounts[]] | add) == .allocated_bytes'
	json "$1.json" '.processes[0].allocated_bytes as $all | ($all - ($a | tonumber) | fabs) < ($b | tonumber) * $all' "$bytes" "$4"
	json "$1.json" '.processes[0].types[0].type == "System.Int32[]"'
	json "$1.json" '.processes[0].allocations[0] | .method == "Answered.Small()" and .kind == "small"'
	json "$1.json" 'any(.processes[0].allocations[]; .method == "Answered.Large()" and .kind == "large" and .type == "System.Byte[]")'
	has "$1.text" '^ +in Answered\.Large\(\)  Answered\.dll$'
	"$spoor" flame --alloc "$1.nettrace" -q -o "$1.folded" || fail "flame --alloc of $1"
	[ "$(frames "$1.folded" .)" = "$(value "$1.json" '.processes[0].allocated_bytes')" ] || fail "flame --alloc has other bytes than report --alloc"
}
allocated ticks Microsoft-Windows-DotNETRuntime:0x1:5 ticks 0.02
allocated samples Microsoft-Windows-DotNETRuntime:0x80000000000:4 samples 0.2
json ticks.json '.processes[0].large_bytes >= 20002400 and .processes[0].large_bytes < 21000000'

# Waits for a lock, as many as the runtime counted, by one thread for one lock that the main thread holds.
begin_answered one contend 20
record_opened 1 locks.nettrace trace -p $one --clrevents contention
work contended
ended locks
grep -q 'contended 20$' ready.one || fail "the program waited otherwise: $(cat ready.one)"
answer locks locks
json locks.json '.processes[0] | .wait_count == 20 and .unfinished_count == 0 and .incomplete_count == 0 and (.locks | length == 1 and .[0].count == 20)'
json locks.json '.processes[0].pid as $pid | .processes[0].waits | all(.method == ("Answered.Request(AutoResetEvent, AutoResetEvent)") and .owner_tid == $pid and .kind == "lock" and .finished)'
json locks.json '.processes[0] | .waited_ns == ([.timeline.amounts[]] | add) and .waited_ns >= 20 * 5000000 and .locks[0].longest_ns >= 5000000'
has locks.text '^Answered \([0-9]+\), \.NET [0-9.]+: 20 waits for locks in .*, together '
has locks.text "held by thread $one"
"$spoor" flame --locks locks.nettrace -q -o locks.folded || fail "flame --locks"
[ "$(frames locks.folded 'Answered\.Request')" = "$(value locks.json '.processes[0].waited_ns')" ] || fail "flame --locks has another time than report --locks"

# Waits for a handle and for a pulse.
begin_answered one wait 10
record_opened 1 waits.nettrace trace -p $one --providers Microsoft-Windows-DotNETRuntime:0x40000000000:5
work waited
ended waits
answer waits waits
json waits.json '[.processes[0].waits[] | select(.method | test("^Answered.WaitEvent")) | select(.kind == "handle") | .count] | add == 10'
json waits.json '[.processes[0].waits[] | select(.method == "Answered.WaitPulse()" and .kind == "Monitor.Wait") | .count] | add == 10'
has waits.text '^ +in Answered\.WaitPulse\(\)  Answered\.dll$'

# A starved pool: its work items block half in a task and half in a sleep, for as long as they say.
begin_answered one starve 2000
record_opened 1 pool.nettrace trace -p $one --providers Microsoft-Windows-DotNETRuntime:0x10000:4,Microsoft-DotNETCore-SampleProfiler:0:4
work starved
ended pool
answer threadpool pool
json pool.json '.processes[0] | .starved_ns > 0 and .most_threads > .min_threads and .starvations[0].added > 0 and any(.adjustments[]; .reason == "starvation")'
json pool.json '.processes[0].work | any(.activity == "sync over async" and (.method | test("^Answered.Block")))'
json pool.json '.processes[0].work | any(.activity == "sleep" and (.method | test("^Answered.Nap")))'
json pool.json '.processes[0] | .blocked_ns > 0.5 * .work_ns'
has pool.text '^  starvation +at least [0-9.]+ m?s in '
has pool.text 'sync over async in Answered\.Block\(int\)'

# Compiled methods.
begin one late 200
record_opened 1 jit.nettrace trace -p $one --clrevents jit --clreventlevel verbose
work done
ended jit
answer jit jit
json jit.json '.processes[0] | .method_count == (.methods | length) and .jit_ns == ([.methods[].jit_ns // 0] | add) and .method_count == ([.tiers[].method_count] | add)'
json jit.json '.processes[0] | .method_count > 10 and .jit_ns > 0 and .il_bytes > 0 and .untimed_count < .method_count'
json jit.json 'any(.processes[0].methods[]; (.name | test("^Late.Plain")) and .tier == "tier 0" and .jit_ns > 0 and .il_bytes > 0 and .module == "Managed.dll")'
has jit.text 'methods compiled in .*in the JIT$'

# Requests, as many as the client counted; those that it did not wait for may be more.
load=$(dirname "$spoor")/examples/load
if [ -x "$load" ]; then
	program webapi
	start shop dotnet "$program" "$scratch/port" >shop.out 2>&1
	until_true test -s port || fail "the web API does not start"
	record_opened 1 requests.nettrace trace -p $shop --providers Microsoft-AspNetCore-Server-Kestrel::4
	"$load" "$(cat port)" 2 /cpu /alloc >load.out
	kill -INT $recorder
	wait $recorder || fail "the trace of requests failed: $(cat requests.nettrace.err)"
	kill -9 $shop
	answer requests requests
	answered=$(awk '$3 == "answered" { sum += $2 } END { print sum }' load.out)
	json requests.json '.processes[0] | .request_count == ([.routes[].count] | add) and (.request_count + .unfinished_count) == ([.timeline.amounts[]] | add)'
	json requests.json '.processes[0] | .request_count + .unfinished_count - ($a | tonumber) | . >= 0 and . <= 4' "$answered"
	json requests.json '.processes[0].routes | any(.route == "GET /cpu" and .p50_ns <= .p99_ns and .p99_ns <= .longest_ns)'
	has requests.text '  GET /alloc$'
fi
