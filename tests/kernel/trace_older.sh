#!/bin/sh
# spoor ps and trace of programs that bring .NET 8 and 9 with them: what these runtimes do not know is asked for in the way they do. Their packs are fetched once; where that cannot
# be, it is skipped.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

for version in 8.0 9.0; do
	old=$built-$version/Managed
	if [ ! -x "$old" ] || [ "$source_folder/Program.cs" -nt "$old" ]; then
		timeout 100 dotnet publish "$source_folder" -c Release --use-current-runtime --self-contained -p:PublishSingleFile=true -p:ManagedFramework=net$version \
			--artifacts-path "$built-$version-build" -o "$built-$version" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$built-$version.log" 2>&1 || {
			grep -qE 'NU1301|NU1101|NU1102|NU1801' "$built-$version.log" && skip "the runtime pack of .NET $version could not be fetched"
			fail "no program of .NET $version: $(grep -m 3 error "$built-$version.log")"
		}
		touch "$old"
	fi
	: >ready.old
	start old_pid "$old" burn 600000 >ready.old
	until_true grep -q ready ready.old || fail "the program of .NET $version does not start"
	code_of "$spoor" ps -p $old_pid
	has out " single-file +$version\.[0-9]+ "
	has_no out 'not reachable'

	# With stacks and a whole rundown (every runtime knows that), and with part of it (8 does not).
	for profile in dotnet-common gc-collect; do
		code_of timeout 60 "$spoor" trace -p $old_pid --profile $profile --duration 500ms -o old.nettrace
		expect_code 0 ".NET $version, $profile: $(cat err)"
		has err 'events of 1 process .*nothing lost'
	done
	code_of timeout 60 "$spoor" trace -p $old_pid --providers Microsoft-Windows-DotNETRuntime:1:4 --print --rundown false --duration 40s \
		--stopping-event-provider-name Microsoft-Windows-DotNETRuntime --stopping-event-event-name GC/Start
	has out '/GC/Start  Count=[0-9]+ Depth=[0-9] '

	# Events by their numbers are not to be had, and leaving that out would give others than were asked for.
	code_of timeout 60 "$spoor" trace -p $old_pid --providers Microsoft-Windows-DotNETRuntime:1:4 --event-ids Microsoft-Windows-DotNETRuntime:1 --duration 500ms -o none.nettrace
	expect_code 1 ".NET $version, event ids"
	has err 'its runtime cannot choose events by id'
	[ ! -e none.nettrace ] || fail "a file of nothing"
	kill -0 $old_pid || fail "the program of .NET $version is gone"
	kill -9 $old_pid
done
exit 0
