#!/bin/sh
# .NET programs that cannot be asked, or not at once: each costs its own names only, the report says why, and the program stays well.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

record_it() {
	code_of timeout 20 "$spoor" record -q -F 499 -p "$1" --duration "${2:-700ms}" -o x.nettrace
	expect_code 0 "${3:-recording}"
	folded x.nettrace x.folded
	"$spoor" report x.nettrace >report 2>err || fail "report"
}

# Switched off: the reason, and native names all the same. What an earlier process of that number has left behind (a runtime that is killed leaves
# its socket) is not its own.
begin earlier burn 60000
kill -9 $earlier
wait $earlier
export DOTNET_EnableDiagnostics=0
export DOTNET_TieredCompilation=0 # precompiled code stays what it is
begin off burn 60000
unset DOTNET_TieredCompilation
for left in "${TMPDIR:-/tmp}/dotnet-diagnostic-$earlier-"*; do
	mv "$left" "${TMPDIR:-/tmp}/dotnet-diagnostic-$off-1-socket"
done
clean_up_more() {
	rm -f "${TMPDIR:-/tmp}/dotnet-diagnostic-$off-1-socket"
}
record_it $off 700ms "a program with its diagnostics off"
has report 'no names from its runtime: it has no diagnostics socket'
at_least x.folded 1 'start_thread|__libc_start|libc\.so'
at_least x.folded 10 '\(JIT code\)|\(JIT stub\)'
at_least x.folded 5 'ArraySortHelper|CompareOrdinal'
kill -9 $off

# Switched off, but it keeps a map for perf.
export DOTNET_PerfMapEnabled=1
begin mapped burn 60000
unset DOTNET_EnableDiagnostics DOTNET_PerfMapEnabled
record_it $mapped 700ms "a program with a perf map"
at_least x.folded 10 'Burn'
kill -9 $mapped
rm -f "/tmp/perf-$mapped.map" "/tmp/perfinfo-$mapped.map"

# Stopped: we do not hang, and it is well afterwards.
begin stopped burn 60000
kill -STOP $stopped
before=$(date +%s)
record_it $stopped 500ms "a stopped program"
[ $(($(date +%s) - before)) -le 12 ] || fail "a stopped program held us $(($(date +%s) - before)) s"
has report 'stopped|no answer|does not answer'
kill -CONT $stopped
record_it $stopped 700ms "the program after it goes on"
at_least x.folded 10 ';Hot\.Burn'

kill -0 $stopped || fail "the program is gone"
exit 0
