#!/bin/sh
# symbols.sh BUILD-FOLDER: TraceEvent shows the names that spoor symbols apply has written into a recording of a program without symbols, and as many of them as spoor report.
# Skipped without a .NET SDK, and where its one package cannot be fetched.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"

command -v objcopy >/dev/null || skip "no objcopy here"
export SPOOR_SYMBOL_CACHE="$out/symbols"
rm -rf "$SPOOR_SYMBOL_CACHE"
cp "$build/tests/target" "$out/bare"
strip "$out/bare"
# in_bare FILE PATTERN ("?" is a function without a name): prints how many samples TraceEvent has in functions of `bare` whose name matches.
in_bare() {
	dotnet "$oracle" "$1" >"$out/symbols.theirs" || fail "TraceEvent cannot read $1"
	value "$out/symbols.theirs" '[.functions[] | select(.name | test("^bare!" + $a; "i")) | .self] | add // 0' "$2"
}

code=0
"$build/spoor" record -q -F 499 -o "$out/bare.nettrace" -- "$out/bare" spin 1000 || code=$?
[ $code != 3 ] || skip "this user may not record here (spoor doctor says why)"
before=$(in_bare "$out/bare.nettrace" '[?]$')
[ "$before" -gt 50 ] || fail "TraceEvent has $before samples in functions without a name"
"$build/spoor" symbols import "$build/tests/target"
"$build/spoor" symbols apply "$out/bare.nettrace"
rm -rf "$SPOOR_SYMBOL_CACHE"

named=$(in_bare "$out/bare.nettrace" 'spin_here$')
"$build/spoor" report --raw-names --json "$out/bare.nettrace" >"$out/symbols.json"
ours=$(value "$out/symbols.json" '[.processes[].functions[] | select(.module == "bare" and .name == "spin_here") | .self_samples] | add // 0')
[ "$named" = "$ours" ] && [ "$named" -gt 50 ] || fail "spin_here: TraceEvent has $named samples, spoor report $ours, of $before"
[ "$(in_bare "$out/bare.nettrace" '[?]$')" = 0 ] || fail "functions still have no name"
echo "  same  samples in spin_here: $ours, of $before without names before"
