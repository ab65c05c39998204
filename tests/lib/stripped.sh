#!/bin/sh
# stripped.sh BUILD-FOLDER: in a trace of a stripped program each function has one name, whatever its number of sampled addresses.
set -eu
build=$(realpath "$1")
work=$(mktemp -d)
server=''
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

fail() {
	echo "FAILED: $*"
	exit 1
}

command -v strip >/dev/null || {
	echo "skipped: strip (binutils) is not installed"
	exit 77
}
strip -o "$work/stripped-server" "$build/examples/server"
export TMPDIR="$work" LD_LIBRARY_PATH="$build"
"$work/stripped-server" >"$work/server.out" 2>&1 &
server=$!
for _ in $(seq 600); do
	! grep -q ready "$work/server.out" || break
	sleep 0.1
done
"$build/spoor" trace -p "$server" --duration 2 --raw -o "$work/x.nettrace" 2>"$work/trace.err" || fail "spoor trace: $(cat "$work/trace.err")"
"$build/spoor" events "$work/x.nettrace" --event 'Method/DCStopVerbose' >"$work/methods"
grep -q 'MethodName="sub_[0-9a-f]*"' "$work/methods" || fail "no function by its bounds: $(cat "$work/methods")"
! grep 'MethodName="+0x' "$work/methods" || fail "an address instead of a function"
! grep 'MethodName="sub_.* MethodSize=1 ' "$work/methods" || fail "a function of one byte"
sed 's/.*MethodStartAddress=\(0x[0-9a-f]*\) .*/\1/' "$work/methods" | sort | uniq -d >"$work/twice"
[ ! -s "$work/twice" ] || fail "a function has two rows: $(cat "$work/twice")"
