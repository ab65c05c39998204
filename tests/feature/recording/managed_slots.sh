#!/bin/sh
# Every session is ended: a program has 64 slots, and more recordings and counts than that, several at a time, leave all of them free.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

begin burner paced 600000
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

# The same with the counters, one after the other; some of them are killed.
begin shop meters 600000
for i in $(seq 66); do
	"$spoor" counters -q -p $shop --counters Shop.Orders --refresh-interval 0.1 --count 1 >/dev/null 2>err || fail "session $i"
done
for i in 1 2 3; do
	start reader "$spoor" counters -q -p $shop >/dev/null 2>&1
	until_true has_session $shop || fail "no session is opened"
	kill -9 $reader
	wait $reader 2>/dev/null
	until_true no_session $shop || fail "a session is left: $(sessions $shop)"
done
until_true all_slots_free $shop || fail "$(free_slots $shop) of 64 slots are free"
code_of "$spoor" counters -p $shop --counters Shop.Orders --count 1
expect_code 0 "after all of them"
has out 'shop\.temperature'
exit 0
