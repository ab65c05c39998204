#!/bin/sh
# spoor record, trace, counters, stacks, heap and dump of programs with .NET 8 and 9 show what the program does. The runtimes' packs are fetched once; the test is skipped when that
# fails.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
hostile=$(dirname "$spoor")/tests/hostile

# dumped TYPE: spoor writes a core of $posed; the program continues and answers, and no copy of it is left.
dumped() {
	code_of timeout 250 "$spoor" dump -q -p $posed -o "$PWD/old.core" --type "$1"
	expect_code 0 "$what, dump: $(cat err)"
	[ "$(head -c 4 old.core | od -An -tx1 | tr -d ' ')" = 7f454c46 ] || fail "$what: the dump is no ELF file"
	kill -0 $posed || fail "$what: the program that was dumped is gone"
	until_true sh -c "! pgrep -P $posed" || fail "$what: a copy of the program stays: $(ps -o pid,stat,comm --ppid $posed)"
	code_of timeout 100 "$spoor" ps -p $posed --json
	json out '.processes[0].reachable'
	rm -f old.core
}

for version in 8.0 9.0; do
	older $version
	what=".NET $version"

	# Counters of its Meter, of its EventSource and of the runtime, with known values.
	begin_old shop meters 600000
	code_of "$spoor" ps -p $shop --json
	json out '.processes[0] | .reachable and (.runtime_version | startswith($a + "."))' $version
	code_of timeout 250 "$spoor" counters -p $shop --counters Shop.Orders,Shop-Counters --count 3
	expect_code 0 "$what, counters"
	meter_tags=region=north
	[ $version != 8.0 ] || meter_tags='' # it sends the tags of a value only, not those of a Meter
	has out "Shop\.Orders +shop\.temperature${meter_tags:+ }$meter_tags +21\.5 Cel$"
	has out "Shop\.Orders +shop\.duration${meter_tags:+ }$meter_tags p99 +9\.99 ms +p50 6\.00 ms +p95 9\.99 ms +[0-9.]+ /s$"
	has out "Shop\.Orders +shop\.orders kind=book${meter_tags:+,}$meter_tags +[0-9.]+ /s"
	has out 'Shop-Counters +Order Size +5\.50 kg$'
	has out 'Shop-Counters +Order Rate +[0-9.]+ /s$'
	code_of timeout 250 "$spoor" counters -p $shop --count 3 --json
	expect_code 0 "$what, the runtime's own counters"
	if [ $version = 8.0 ]; then # no Meter of the runtime's yet
		json_lines out 'any(.[]; .counter == "cpu-usage" or .counter == "working-set")'
	else
		json_lines out 'any(.[]; .counter == "dotnet.process.memory.working_set")'
	fi
	# A program that spoor starts: spoor enables the EventCounters of .NET 8 after its start, so that it does not lock up.
	for _ in 1 2 3; do
		code_of timeout 250 "$spoor" trace --providers System.Runtime:0:4:EventCounterIntervalSec=1,Microsoft-Windows-DotNETRuntime:10:5 --rundown false \
			-o started.nettrace -- "$old" burn 3000
		expect_code 0 "$what, a start with EventCounters: $(cat err)"
		has out rounds
	done
	"$spoor" events started.nettrace >lines 2>err || fail "events: $(cat err)"
	has lines '  System\.Runtime/EventCounters  .*Name="working-set" .* Mean=[1-9]'
	has lines 'Code="late-counters" '
	has lines 'MethodNamespace="(System.StartupHookProvider|Program|Hot)"'
	kill -9 $shop

	# Events: decoded, with the types and texts that the program throws.
	begin_old thrower events 200
	record_opened 1 thrown.nettrace trace -p $thrower --providers Microsoft-Windows-DotNETRuntime:0x8001:5
	touch go
	until_true grep -q thrown ready.thrower || fail "$what: it does not end its work"
	sleep 0.5
	kill -INT $recorder
	wait $recorder || fail "$what: the trace of exceptions"
	rm -f go
	"$spoor" events thrown.nettrace >lines 2>err || fail "events: $(cat err)"
	has thrown.nettrace.err ' 1 process in [0-9.]+ m?s, nothing lost$'
	[ "$(grep -c 'Microsoft-Windows-DotNETRuntime/Exception/Start  ExceptionType="' lines)" = 200 ] || fail "$what: not 200 exceptions: $(grep -c Exception/Start lines)"
	has lines 'GC/Start  Count=[0-9]+ Depth=[0-9] '
	has lines 'Microsoft-Windows-DotNETRuntimeRundown/Method/[A-Za-z]+  .*MethodNamespace="Told"'
	touch end
	until_true ended_process $thrower || fail "$what: it does not end"
	rm -f end

	# Stacks: threads by name, managed methods by name, what they wait for.
	# The sessions of diagnose: these runtimes refuse event ids.
	begin_old starving starve 3
	until_true grep -q starved ready.starving || fail "$what: the pool does not starve"
	code_of timeout 250 "$spoor" diagnose -p $starving --duration 5s -o old.nettrace --json
	expect_code 0 "$what, diagnose"
	json out '.processes[0] | any(.findings[]; .kind == "sync-over-async" and .method == "Starved.Block") and .not_judged == []'
	"$spoor" report -v old.nettrace >report || fail "$what: report -v"
	has report '^opened in .*; activities, 16 MB, with stacks; exceptions .*; rundown'
	kill -9 $starving

	begin_old posed threads 100000
	until_true grep -q posed ready.posed || fail "$what: the program's threads do not come"
	code_of timeout 250 "$spoor" stacks -p $posed --timeout 60s
	expect_code 0 "$what, stacks: $(cat err)"
	has out "^[^ ]+ \([0-9]+\), \.NET $version\.[0-9]+, "
	has out '^4 threads  '
	has out '^  [0-9]+ Parked 0, [0-9]+ Parked 1, [0-9]+ Parked 2, [0-9]+ Parked 3$'
	has out '^    Posed\.Park\(\) +Managed$'
	has out '^    Posed\.Sleep\(\) +Managed$'
	has out '^    Threading\.Thread\.Sleep\(int\) +System\.Private\.CoreLib$'
	has out '^    Program\.<Main>\$\(string\[\]\) +Managed$|^    Program\.Main\(string\[\]\) +Managed$'

	# Samples by perf events, and by the threads' CPU clocks if no perf event may be opened: methods have names, and no session is left.
	begin_old burner burn 600000
	record_until 60 ';Hot\.Burn\(int\)' -F 499 -p $burner
	expect_code 0 "$what, record: $(cat err)"
	code_of "$spoor" report --json x.nettrace
	json out 'any(.processes[]; .runtime_version != null and (.runtime_version | startswith($a + ".")))' $version
	json out 'any(.processes[].functions[]; .kind == "jit")'
	if "$hostile" no-perf EPERM true; then
		# The program uses CPU time while spoor attaches and detaches, too; in a longer recording that matters less.
		for seconds in 3 12 40; do
			before=$(used $burner)
			code_of timeout 250 "$hostile" no-perf EPERM "$spoor" record -p $burner --duration ${seconds}s -o clocks.nettrace
			after=$(used $burner)
			"$spoor" report --json clocks.nettrace >clocks.json || fail "no report"
			[ $(($(of_process clocks.json $burner cpu_ns) / 1000000)) -lt $(((after - before) * 70 / 100 - 20)) ] || break
		done
		expect_code 0 "$what, record without perf events: $(cat err)"
		has err '^cannot sample anything: perf_event_open is forbidden here'
		"$spoor" report clocks.nettrace >report || fail "no report"
		top_row report >top
		has top 'Hot\.Burn\(int\)'
		code_of "$spoor" report --json clocks.nettrace
		got=$(($(of_process out $burner cpu_ns) / 1000000))
		[ $got -le $((after - before + 20)) ] && [ $got -ge $(((after - before) * 70 / 100 - 20)) ] || fail "$what: $got ms in the report, $((after - before)) ms in /proc"
	else
		echo "no seccomp filter can be set here: .NET $version without perf events is not tried"
	fi
	until_true all_slots_free $burner || fail "$what: a session is left: $(free_slots $burner) of 64 slots are free"
	kill -9 $burner

	# A core. A single file without the runtime's debugging library can write a full dump only; spoor ends the copy of the process that it leaves.
	code_of timeout 250 "$spoor" dump -q -p $posed -o "$PWD/old.core" --type mini
	expect_code 1 "$what, dump of a single file"
	has err "^process $posed is a single file: only --type full can be had of it without '.*/libmscordaccore\.so'"
	[ -z "$(pgrep -P $posed)" ] || fail "$what: the program has a child: $(pgrep -P $posed)"
	dumped full
	pack=$(ls -d "${NUGET_PACKAGES:-$HOME/.nuget/packages}"/microsoft.netcore.app.runtime.linux-*/$version.*/runtimes/linux-*/native 2>/dev/null | head -n 1)
	if [ -e "$pack/libmscordaccore.so" ]; then
		kill -9 $posed
		mkdir -p whole
		cp "$old" "$pack/libmscordaccore.so" whole/
		start posed whole/Managed threads 100000 >ready.posed
		until_true grep -q posed ready.posed || fail "$what: the program's threads do not come"
		dumped mini
		rm -rf whole
	else
		echo "no libmscordaccore.so of .NET $version in the package folder: a dump without all memory is not tried"
	fi
	kill -9 $posed

	# The heap: as many objects of its types as it keeps, and the paths to them.
	rm -f orders && mkfifo orders
	sleep 6000 >orders &
	holder=$!
	started="$started $holder"
	ORDERS=$PWD/orders begin_old kept heap 20000
	code_of timeout 250 "$spoor" heap -p $kept -o old.gcdump --json --top 20
	expect_code 0 "$what, heap: $(cat err)"
	json out '.whole and .missing == "" and .nameless_bytes == 0'
	json out 'any(.types[]; .name == "Order" and (.module | test("Managed")) and .count == 20000 and .size_bytes == 640000)'
	json out 'any(.types[]; .name == "Note" and (.module | test("Managed")) and .count == 10000)'
	code_of "$spoor" heap roots old.gcdump Note
	has out '^10,000 objects, '
	has out '^  \[static var all \(System\.Collections\.Generic\.Dictionary<System\.Int32,Order>\)\]$'
	until_true all_slots_free $kept || fail "$what: a session is left: $(free_slots $kept) of 64 slots are free"
	kill -9 $kept $holder
done
exit 0
