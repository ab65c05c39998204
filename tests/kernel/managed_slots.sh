#!/bin/sh
# Every session is given back: a program has 64 places, and more recordings than that, several at a time, leave it well.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

begin burner burn 60000
for round in $(seq 11); do
	pids=''
	for i in 1 2 3 4 5 6; do
		"$spoor" record -q -p $burner --duration 20ms -o "x$i.nettrace" 2>"err$i" &
		pids="$pids $!"
	done
	for pid in $pids; do
		wait "$pid" || fail "a recording of round $round: $(cat err?)"
	done
done
# Killed ones cannot give theirs back themselves: the runtime does, when it writes to nobody.
for i in 1 2 3 4; do
	start killed "$spoor" record -q -p $burner -o killed.nettrace
	sleep 0.3
	kill -9 $killed
	wait $killed
done
code_of "$spoor" record -q -F 499 -p $burner --duration 700ms -o x.nettrace
expect_code 0 "the recording after them"
folded x.nettrace x.folded
at_least x.folded 30 ';Hot\.Burn'
kill -0 $burner || fail "the program is gone"
exit 0
