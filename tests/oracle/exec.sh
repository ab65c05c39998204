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
	burnt=$(value "$out/exec.theirs" '[.functions[] | select(.name | test("^managed!Hot::Burn"; "i")) | .self] | add // 0')
}

# A busy machine gives it less time: until there are enough samples to compare.
for ms in 1000 4000 16000; do
	record $ms
	[ "$burnt" -le 50 ] || break
done

same() {
	[ "$2" = "$3" ] || { echo "DIFFERENT  $1: TraceEvent $2, spoor report $3" && exit 1; }
	echo "  same  $1: $2"
}

json "$out/exec.json" '.processes | length == 2' # the shell and the .NET program
same samples "$(value "$out/exec.theirs" .samples)" "$(value "$out/exec.json" .samples)"
same frames "$(value "$out/exec.theirs" .frames)" "$(value "$out/exec.json" .names.frames)"
same 'frames without a name' "$(value "$out/exec.theirs" .frames_unnamed)" "$(value "$out/exec.json" '.names | .frames - .named_frames')"
same processes "$(value "$out/exec.theirs" '[.known_processes[] | select(.name == "dotnet" or .name == "Managed")] | length')" 1
[ "$burnt" -gt 50 ] || fail "TraceEvent has $burnt samples in Hot.Burn"
