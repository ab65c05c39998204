#!/bin/sh
# record --profile startup and report --startup: the steps of a start are in their order and have what happened in them: assemblies, compiled and precompiled methods,
# CPU time; a server's start ends with the first answer; a program that is one file has no host; a process that ran before has no start.
own_machine=yes
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
. "$here/faults_prelude"

# started FILE: the report of the start, in start.json.
started() {
	"$spoor" report --startup --json "$1" >start.json 2>err || fail "report --startup"
	"$spoor" report --startup "$1" >out 2>err || fail "report --startup as text"
}

# in_order STEP...: the steps are known, in this order, and no others.
in_order() {
	json start.json '.processes[0].steps | keys_unsorted == ($a | split(" ")) and (to_entries | map(.value) | . == sort)' "$*"
}

code_of "$spoor" record -q --profile startup -o x.nettrace -- dotnet "$app" burn 300
expect_code 0 "a recording of a start"
started x.nettrace
json start.json '.processes | length == 1 and .[0].has_runtime_events'
in_order exec hostfxr hostpolicy coreclr runtime main
json start.json '.processes[0] | [.phases[].from] == ["exec","hostfxr","hostpolicy","coreclr","runtime","main"] and .phases[5].to == "end" and all(.phases[]; .wall_ns >= 0)'
json start.json '.processes[0] | .phases as $p | all(range(0; 5) as $i | $p[$i].begin_ns + $p[$i].wall_ns == $p[$i + 1].begin_ns)'
json start.json '.processes[0] | [.phases[].assembly_count] | add >= 3'
json start.json '.processes[0] | any(.assemblies[]; .name == "Managed") and any(.methods[]; .name == "Program.<Main>$" and .duration_ns > 0)'
json start.json '.processes[0] | ([.methods[]] | length) == ([.phases[].jit_count] | add) and ([.phases[].r2r_count] | add) > 100'
# The CPU time of the phases is that of the samples since the exec.
"$spoor" report --json x.nettrace >report.json || fail "report"
json report.json '[.processes[] | select(.name == "Managed") | .cpu_ns] | add as $all | $all > 0 and ($a | tonumber) <= $all and ($a | tonumber) > $all / 2' \
	"$(value start.json '[.processes[0].phases[].cpu_ns] | add')"
json start.json '.processes[0] | .first_managed_sample_ns == null or .first_managed_sample_ns >= .steps.exec'
has out '^Managed \([0-9]+\), \.NET [0-9.]+: in Main after [0-9.]+ m?s$'
has out '  to Main$'
"$spoor" report x.nettrace >out || fail "report"
has out '^--startup +in Main after '

# A server: its start ends with the first answer, and later requests are no part of it.
if command -v curl >/dev/null; then
	rm -f port
	start recorder "$spoor" record -q --profile startup -o y.nettrace -- dotnet "$faults" "$scratch/port"
	until_true test -s port || fail "the web API does not start"
	for _ in 1 2 3; do
		curl -sf --max-time 100 "http://127.0.0.1:$(cat port)/hotspot" >/dev/null || fail "no answer"
	done
	kill -INT $recorder
	wait $recorder
	started y.nettrace
	in_order exec hostfxr hostpolicy coreclr runtime main ready request answer
	json start.json '.processes[0].phases | length == 8 and .[7].from == "request" and .[7].to == "answer"'
	has out ': ready after [0-9.]+ m?s, its first request took [0-9.]+ m?s$'
else
	echo "curl is not installed: no request is sent"
fi

# One file: no libraries of a host are loaded.
single=$("$top/scripts/test-programs" managed-single) && {
	code_of "$spoor" record -q --profile startup -o z.nettrace -- "$single" burn 300
	expect_code 0 "a recording of one file"
	started z.nettrace
	in_order exec runtime main
} || echo "the program as one file is not built: $single"

# Without the profile's events, and of a process that ran before.
code_of "$spoor" record -q --no-events -o none.nettrace -- dotnet "$app" burn 300
"$spoor" report --startup none.nettrace >out 2>err || fail "report --startup without events"
has out '^  events       methods and assemblies are not in the recording: spoor record --profile startup -- COMMAND$'
begin idle idle 600000
code_of "$spoor" record -q --profile startup -p $idle --duration 1s -o late.nettrace
"$spoor" report --startup late.nettrace >out 2>err || fail "report --startup of a process that ran"
has out '^no start of a \.NET process is in this selection; spoor record --profile startup -- COMMAND records one$'
