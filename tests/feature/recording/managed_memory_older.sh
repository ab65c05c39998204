#!/bin/sh
# Names of .NET 8 and 9 methods from the memory of single-file programs: those that the runtime sends, and none that it does not.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# jitted FILE: prints address and name of each compiled method in a recording, without the tier, which the memory of .NET 8 does not have.
jitted() {
	"$spoor" events "$1" --event ProcessSymbol --json >symbols.json 2>events.err
	value symbols.json '.fields | select(.Name | test("\\] .*::.*\\]$")) | "\(.Start) \(.Name)"' | sed -E 's/\[[A-Za-z0-9]*\]$//' | sort -u
}

for version in 8.0 9.0; do
	older $version
	begin_old both burn 600000
	start socket "$spoor" record -q --no-events -F 1999 -p $both --duration 4s -o socket.nettrace
	code_of "$spoor" record --names-from-memory -F 1999 -p $both --duration 4s -o memory.nettrace
	expect_code 0 ".NET $version"
	has err '^memory     methods of 1 \.NET process were named from its memory'
	wait $socket
	jitted socket.nettrace >socket.names
	jitted memory.nettrace >memory.names
	join socket.names memory.names >joined
	grep -v IL_STUB joined | awk '{ half = (length($0) - length($1)) / 2; if (substr($0, length($1) + 1, half) != substr($0, length($1) + 1 + half)) print }' >different
	[ ! -s different ] || fail ".NET $version: other names than the runtime's: $(head -n 5 different)"
	grep -q 'Hot::Burn' joined || fail ".NET $version: Hot::Burn is not in both: $(cat socket.names memory.names | head -n 20)"
	kill -9 $both

	export DOTNET_EnableDiagnostics=0
	begin_old off burn 600000
	unset DOTNET_EnableDiagnostics
	record_until 30 ';Hot\.Burn' -F 499 -p $off
	expect_code 0 ".NET $version with its diagnostics off"
	kill -9 $off
done
exit 0
