#!/bin/sh
# Every session is ended: a program has 64 slots, and more recordings than that, several at a time, leave all of them free.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

begin burner burn 600000
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
# The guard ends the sessions of recorders that are killed.
for i in 1 2 3 4; do
	record_opened 1 killed.nettrace record -q -p $burner
	kill -9 $recorder
	wait $recorder
done
until_true all_slots_free $burner || fail "$(free_slots $burner) of 64 slots are free"
record_until 30 ';Hot\.Burn' -F 499 -p $burner
expect_code 0 "the recording after them"
kill -0 $burner || fail "the program is gone"
exit 0
