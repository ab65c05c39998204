#!/bin/sh
# exec.sh BUILD-FOLDER: TraceEvent finds as many names as spoor report in a recording of a shell that computes and then executes a .NET program, as entry-point scripts do. Skipped
# without a .NET SDK, and where its one package cannot be fetched.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"

program managed
app=$program
file=$out/exec.nettrace

# shellcheck disable=SC2016 # for the inner shell
record() {
	code=0
	"$build/spoor" record -q -F 999 -o "$file" -- sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done; exec dotnet "$0" burn "$1"' "$app" "$1" || code=$?
	[ $code != 3 ] || skip "this user may not record here (spoor doctor says why)"
	[ $code = 0 ] || exit $code
	"$build/spoor" report --raw-names --json "$file" >"$out/exec.json"
	dotnet "$oracle" "$file" >"$out/exec.theirs"
	burnt=$(grep -oE '"name":"managed!Hot::Burn[^"]*","self":[0-9]+' "$out/exec.theirs" | cut -d: -f5)
}

# A busy machine gives it less time: until there are enough samples to compare.
for ms in 1000 4000 16000; do
	record $ms
	[ "${burnt:-0}" -le 50 ] || break
done

# number FILE FILTER
number() {
	jq -r "$2" "$1"
}

same() {
	[ "$2" = "$3" ] || { echo "DIFFERENT  $1: TraceEvent $2, spoor report $3" && exit 1; }
	echo "  same  $1: $2"
}

[ "$(number "$out/exec.json" '.processes | length')" = 2 ] || { echo "the shell has no sample of its own" && exit 1; }
same samples "$(number "$out/exec.theirs" .samples)" "$(number "$out/exec.json" .samples)"
same frames "$(number "$out/exec.theirs" .frames)" "$(number "$out/exec.json" .names.frames)"
same 'frames without a name' "$(number "$out/exec.theirs" .frames_unnamed)" "$(number "$out/exec.json" '.names | .frames - .named_frames')"
same processes "$(number "$out/exec.theirs" '[.known_processes[] | select(.name == "dotnet" or .name == "Managed")] | length')" 1
burnt=$(number "$out/exec.theirs" '[.functions[] | select(.name | test("^managed!Hot::Burn"; "i")) | .self] | add // 0')
[ "${burnt:-0}" -gt 50 ] || { echo "TraceEvent has ${burnt:-0} samples in Hot.Burn" && exit 1; }
