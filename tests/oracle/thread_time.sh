#!/bin/sh
# thread_time.sh BUILD-FOLDER: TraceEvent's Thread Time, which PerfView shows, has the same times off the CPU as spoor report, for every thread of a recording. Skipped without a .NET
# SDK, where its one package cannot be fetched, and without the right to record context switches.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"

file=$out/thread_time.nettrace
code=0
"$build/spoor" record -q --off-cpu -F 499 -o "$file" -- "$build/tests/target" waits 300 || code=$?
[ $code != 3 ] || skip "this user may not record here (spoor doctor says why)"
[ $code = 0 ] || exit $code
"$build/spoor" report --thread-time --json "$file" >"$out/thread_time.json"
json "$out/thread_time.json" '[.processes[].threads[]] | length >= 4'
dotnet "$oracle" thread-time "$file" "$out/thread_time.json"
