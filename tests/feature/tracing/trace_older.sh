#!/bin/sh
# spoor ps, trace and record of programs with .NET 8 and 9: spoor uses only the requests that these runtimes have. The runtimes' packs are fetched once; the test is skipped when that
# fails.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

for version in 8.0 9.0; do
	older $version
	begin_old old_pid burn 600000
	code_of "$spoor" ps -p $old_pid
	has out " single-file +$version\.[0-9]+ "
	has_no out 'not reachable'

	# With stacks and a whole rundown, and with a part of the rundown, which .NET 8 does not have.
	for profile in dotnet-common gc-collect; do
		code_of timeout 250 "$spoor" trace -p $old_pid --profile $profile --duration 3s -o old.nettrace
		expect_code 0 ".NET $version, $profile: $(cat err)"
		has err 'events( and [0-9,]+ of the rundown,)? of 1 process .*nothing lost'
	done
	code_of timeout 250 "$spoor" trace -p $old_pid --providers Microsoft-Windows-DotNETRuntime:1:4 --print --rundown false --duration 200s \
		--stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name GC/Start
	has out '/GC/Start  Count=[0-9]+ Depth=[0-9] '

	# These runtimes cannot select events by id, so spoor fails.
	code_of timeout 250 "$spoor" trace -p $old_pid --providers Microsoft-Windows-DotNETRuntime:1:4 --event-ids Microsoft-Windows-DotNETRuntime:1 --duration 500ms -o none.nettrace
	expect_code 1 ".NET $version, event ids"
	has err 'its runtime cannot choose events by id'
	[ ! -e none.nettrace ] || fail "a file of nothing"
	kill -0 $old_pid || fail "the program of .NET $version is gone"
	kill -9 $old_pid

	# The events of a recording: spoor drops events that these runtimes cannot leave out.
	begin_old old_pid events 200
	record_opened 1 older.nettrace record -p $old_pid -F 199
	touch go
	until_true grep -q thrown ready.old_pid || fail "the program of .NET $version does not end its work"
	sleep 0.5
	kill -INT $recorder
	wait $recorder || fail ".NET $version: the recording failed: $(cat older.nettrace.err)"
	has older.nettrace.err ' \.NET events in .*nothing lost'
	"$spoor" report -v older.nettrace >report
	"$spoor" report --json older.nettrace >json
	has report '^opened in .*: live Microsoft-Windows-DotNETRuntime:0x100003403d:[45], 16 MB.*; exceptions Microsoft-Windows-DotNETRuntime:0x200000000:2, 16 MB'
	has report '^ +200  Microsoft-Windows-DotNETRuntime/Exception/Start'
	collected=$(sed -n 's/.*collected \([0-9]*\).*/\1/p' ready.old_pid)
	has report "^ +$collected  Microsoft-Windows-DotNETRuntime/GC/SuspendEEStart"
	json json 'any(.events[]; .name | endswith("GC/Start"))'
	json json 'any(.events[]; .name | test("GC/AllocationTick|GC/PinObjectAtGCTime|Method/(LoadVerbose|JittingStarted|ILToNativeMap)|ThreadPool(Enqueue|Dequeue)")) | not'
	touch end
	until_true ended_process $old_pid || fail "the program of .NET $version does not end"
	rm -f go end older.nettrace
done
exit 0
