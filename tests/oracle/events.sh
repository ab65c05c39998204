#!/bin/sh
# events.sh BUILD-FOLDER: TraceEvent finds as many exceptions and collections in a recording of two programs as these count themselves, with the right process
# (Counted.cs), and report --gc has the same figures of each collection (Collections.cs); also in a recording that was packed and unpacked. Skipped as run.sh is.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"
work=$out/events
one='' two='' recorder=''
rm -rf "$work"
mkdir "$work"

stop() {
	for each in $recorder $one $two; do
		kill -9 "$each" 2>/dev/null || :
	done
	wait
}
trap stop EXIT

"$build/spoor" help record >/dev/null 2>&1 || skip "this spoor cannot record"
program managed
app=$program
cd "$work"

# until_has FILE PATTERN: a minute at most.
until_has() {
	for _ in $(seq 600); do
		grep -q "$2" "$1" 2>/dev/null && return 0
		sleep 0.1
	done
	echo "FAILED: no '$2' in $1"
	exit 1
}

# counted NAME [option]: a recording of two programs.
counted() {
	name=$1 && shift
	rm -f go end
	dotnet "$app" events 500 >one.out &
	one=$!
	dotnet "$app" events 300 >two.out &
	two=$!
	until_has one.out ready
	until_has two.out ready
	"$build/spoor" record -F 499 -p "$one,$two" -o "$name" "$@" </dev/null 2>record.err &
	recorder=$!
	if ! sessions_open "$name" 2; then
		code=0
		wait $recorder || code=$?
		recorder=''
		cat record.err
		[ $code = 3 ] && skip "this user may not record here (spoor doctor says why)"
		exit 1
	fi
	touch go
	until_has one.out thrown
	until_has two.out thrown
	sleep 0.5
	kill -INT $recorder
	wait $recorder
	recorder=''
	touch end
	wait $one $two
	sed 's/^/  /' record.err
	words="$one $(sed -n 's/thrown \([0-9]*\) collected \([0-9]*\)/\1 \2/p' one.out) $two $(sed -n 's/thrown \([0-9]*\) collected \([0-9]*\)/\1 \2/p' two.out)"
	one='' two=''
}

counted plain.nettrace
echo "plain.nettrace:"
# shellcheck disable=SC2086 # its words
dotnet "$oracle" counted plain.nettrace $words
"$build/spoor" report --gc --json plain.nettrace >gc.json
dotnet "$oracle" collections plain.nettrace gc.json
if command -v zstd >/dev/null; then
	counted packed.nettrace.zst
	zstd -q -d packed.nettrace.zst
	echo "packed.nettrace.zst:"
	# shellcheck disable=SC2086
	dotnet "$oracle" counted packed.nettrace $words
fi
