#!/bin/sh
# freed.sh BUILD-FOLDER: for methods that are freed and replaced while they are recorded, TraceEvent and spoor report give each name the same samples: those that the reads of the
# process's memory prove. Skipped without a .NET SDK, and where its one package cannot be fetched.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"
program managed

# by_method: reads "SAMPLES NAME" lines, and prints the samples of each generated method.
by_method() {
	sed -nE 's/^([0-9]+) .*(Made_[0-9]+|Unloaded_[0-9]+).*/\2 \1/p' | awk '{ n[$1] += $2 } END { for (i in n) if (n[i]) print i, n[i] }' | sort
}

for kind in dynamic collectible; do
	code=0
	"$build/spoor" record -q --names-from-memory -F 999 -o "$out/freed.nettrace" -- dotnet "$program" $kind 1500 >"$out/freed.out" || code=$?
	[ $code != 3 ] || skip "this user may not record here (spoor doctor says why)"
	[ $code = 0 ] || fail "the recorder ends with $code"
	dotnet "$oracle" "$out/freed.nettrace" >"$out/freed.theirs" || fail "TraceEvent cannot read the recording"
	"$build/spoor" report --raw-names --json "$out/freed.nettrace" >"$out/freed.ours"
	value "$out/freed.theirs" '.functions[] | "\(.self) \(.name)"' | by_method >"$out/freed.their-names"
	value "$out/freed.ours" '.processes[].functions[] | "\(.self_samples) \(.name)"' | by_method >"$out/freed.our-names"
	diff "$out/freed.our-names" "$out/freed.their-names" >"$out/freed.diff" || fail "$kind: spoor report (<) and TraceEvent (>): $(head -n 6 "$out/freed.diff")"
	methods=$(wc -l <"$out/freed.our-names")
	[ "$methods" -ge 5 ] || fail "$kind: only $methods methods have a name"
	echo "  same  samples in $methods $kind methods"
done
