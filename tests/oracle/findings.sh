#!/bin/sh
# findings.sh BUILD-FOLDER: spoor diagnose of a recording finds what analyzers in TraceEvent's framework for automated analysis find in the same file (Findings.cs):
# managed CPU time, induced collections, pressure, large objects. Skipped as run.sh is.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"
work=$out/findings
rm -rf "$work"
mkdir "$work"
program faults
faults=$program
load=$build/examples/load
[ -x "$load" ] || skip "the examples are not built"
cd "$work"
subject='' clients='' first_of_all=''
# The thresholds are of CPU time that the program must get beside other programs.
[ "$(id -u)" != 0 ] || first_of_all='nice -n -10'

stop() {
	for each in $clients $subject; do
		kill -9 "$each" 2>/dev/null || :
	done
	wait
}
trap stop EXIT

# compared ROUTE KIND: records the web API under load of the route until diagnose finds the kind, and compares ("" finds none).
compared() {
	rm -f port
	$first_of_all dotnet "$faults" "$work/port" &
	subject=$!
	port_of port
	$first_of_all "$load" "$port" 600 "/$1=3" >/dev/null &
	clients=$!
	for seconds in 6 12 30; do
		"$build/spoor" record -q -p $subject --duration ${seconds}s -o "$1.nettrace" </dev/null
		"$build/spoor" diagnose "$1.nettrace" --json >"$1.json"
		[ -n "$2" ] || break
		! [ "$(value "$1.json" '.processes[0].findings | any(.kind == $a)' "$2")" = true ] || break
	done
	echo "$1.nettrace:"
	dotnet "$oracle" findings "$1.nettrace" "$1.json" $subject
	[ -z "$2" ] || [ "$(value "$1.json" '.processes[0].findings | any(.kind == $a)' "$2")" = true ] || fail "diagnose does not find $2"
	stop 2>/dev/null
	subject='' clients=''
}

compared hotspot cpu-hotspot
compared collect induced-gc
compared garbage gc-pressure
compared large large-object-churn
compared healthy ''
