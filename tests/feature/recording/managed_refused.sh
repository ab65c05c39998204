#!/bin/sh
# .NET programs that cannot be queried, or are stopped: their names are read from their memory, the report has the reason, and the program continues.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# record_it PID WHAT COUNT PATTERN: a recording with so many samples that match.
record_it() {
	record_until "$3" "$4" -F 499 -p "$1"
	expect_code 0 "$2"
	"$spoor" report x.nettrace >report 2>err || fail "report"
}

# Switched off: the reason, and native names. A socket that an earlier process of this id has left (a killed runtime leaves its socket) is not used.
begin earlier burn 600000
kill -9 $earlier
wait $earlier
export DOTNET_EnableDiagnostics=0
export DOTNET_TieredCompilation=0 # so that precompiled code is not replaced
begin off burn 600000
unset DOTNET_TieredCompilation
for left in "${TMPDIR:-/tmp}/dotnet-diagnostic-$earlier-"*; do
	mv "$left" "${TMPDIR:-/tmp}/dotnet-diagnostic-$off-1-socket"
done
clean_up_more() {
	rm -f "${TMPDIR:-/tmp}/dotnet-diagnostic-$off-1-socket"
}
# More than the least numbers below, which are of other frames.
record_it $off "a program with its diagnostics off" 30 'ArraySortHelper|CompareOrdinal'
has report 'no names from its runtime: it has no diagnostics socket'
at_least x.folded 1 'start_thread|__libc_start|libc\.so'
at_least x.folded 10 ';Hot\.Burn' # from its memory
at_least x.folded 5 'ArraySortHelper|CompareOrdinal'
kill -9 $off

# Switched off, but it keeps a map for perf.
export DOTNET_PerfMapEnabled=1
begin mapped burn 600000
unset DOTNET_EnableDiagnostics DOTNET_PerfMapEnabled
record_it $mapped "a program with a perf map" 10 Burn
at_least x.folded 10 'Burn'
kill -9 $mapped
rm -f "/tmp/perf-$mapped.map" "/tmp/perfinfo-$mapped.map"

# Stopped: spoor does not wait, and the program continues afterwards.
begin stopped burn 600000
kill -STOP $stopped
before=$(date +%s)
code_of timeout 200 "$spoor" record -q -F 499 -p $stopped --duration 500ms -o x.nettrace
expect_code 0 "a stopped program"
"$spoor" report x.nettrace >report 2>err || fail "report"
[ $(($(date +%s) - before)) -le 60 ] || fail "spoor waits for a stopped program for $(($(date +%s) - before)) s"
has report 'stopped|no answer|does not answer'
kill -CONT $stopped
record_it $stopped "the program after it continues" 10 ';Hot\.Burn'
at_least x.folded 10 ';Hot\.Burn'

kill -0 $stopped || fail "the program is gone"
exit 0
