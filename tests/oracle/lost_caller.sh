#!/bin/sh
# lost_caller.sh BUILD-FOLDER: where a walk by frame pointers has missed the caller of a small .NET method, TraceEvent shows the name of the mark that the reports show, not an address.
# Skipped without a .NET SDK, and where its one package cannot be fetched.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"

[ "$(uname -m)" = x86_64 ] || skip "missed callers have no mark on $(uname -m)"
program managed
app=$program
file=$out/lost_caller.nettrace

# A busy machine gives it less time: until there are enough samples.
marked=0
for ms in 4000 16000 60000; do
	code=0
	"$build/spoor" record -q -F 499 --call-graph fp -o "$file" -- dotnet "$app" shares "$ms" >/dev/null || code=$?
	[ $code != 3 ] || skip "this user may not record here (spoor doctor says why)"
	[ $code = 0 ] || exit $code
	"$build/spoor" report --raw-names --json "$file" >"$out/lost_caller.json"
	marked=$(value "$out/lost_caller.json" '[.processes[].functions[] | select(.name == "[caller unknown: no frame pointer]") | .total_samples] | add // 0')
	[ "$marked" -lt 50 ] || break
done
[ "$marked" -ge 50 ] || fail "$marked samples have a mark"
dotnet "$oracle" "$file" >"$out/lost_caller.theirs"
names=$(value "$out/lost_caller.theirs" '[.functions[].name | select(contains("[caller unknown"))] | join(" ")')
[ "$names" = '[spoor]![caller unknown: no frame pointer]' ] || fail "TraceEvent's names: $names"
[ "$(value "$out/lost_caller.theirs" .frames_unnamed)" = "$(value "$out/lost_caller.json" '.names | .frames - .named_frames')" ] ||
	fail "frames without a name: TraceEvent $(value "$out/lost_caller.theirs" .frames_unnamed), spoor report $(value "$out/lost_caller.json" '.names | .frames - .named_frames')"
