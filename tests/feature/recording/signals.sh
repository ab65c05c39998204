#!/bin/sh
# A recording that ends by one or more signals, or by SIGKILL at any time, can be read and has names.
. "$(dirname "$(realpath "$0")")/../prelude"

"$target" spin 600000 &
burner=$!
spins='any(.processes[].functions[]; .name == "spin_here")'
started="$started $burner"

record() {
	start recorder "$spoor" record -q -F 999 -p $burner -o "$1"
	until_true test -s "$1" || fail "no file appears"
	before=$(used $burner)
}

ended() {
	wait $recorder && code=0 || code=$?
}

for signal in INT TERM HUP; do
	record x.nettrace
	until_true used_more $burner "$before" 200 || fail "the target gets no CPU time"
	# A shell's background programs ignore SIGINT; the recorder does not.
	kill -$signal $recorder
	ended
	expect_code 0 "SIG$signal"
	code_of "$spoor" report --json x.nettrace
	expect_code 0 "report after SIG$signal"
	json out '.recording.complete'
	json out "$spins"
	kill -0 $burner || fail "SIG$signal ended the target too"
done

record x.nettrace
until_true used_more $burner "$before" 200 || fail "the target gets no CPU time"
kill -INT $recorder
kill -INT $recorder
kill -INT $recorder 2>/dev/null
ended
expect_code 0 "a second signal"
code_of "$spoor" report --json x.nettrace
expect_code 0 "report after a second signal"
json out "$spins"

# SIGKILL at any time leaves a file that can be read. The times are CPU time of the target in milliseconds.
killed() {
	kill -9 $recorder
	ended
	code_of "$spoor" report --json x.nettrace
	expect_code 0 "report of a recording killed $1"
	json out '.recording.complete == false'
}
for moment in 0 100 1500; do
	rm -f x.nettrace
	record x.nettrace
	until_true used_more $burner "$before" $moment || fail "the target gets no CPU time"
	killed "after $moment ms"
done

# What the file had before the SIGKILL it has after it, with names.
rm -f x.nettrace
record x.nettrace
has_samples() {
	"$spoor" report --json x.nettrace >live.json && [ "$(value live.json .samples)" -gt 1000 ] && [ "$(value live.json "$spins")" = true ]
}
until_true has_samples || fail "no 1,000 samples with names are recorded"
killed "in use"
json out '.samples >= ($a | tonumber)' "$(value live.json .samples)"
json out "$spins"
code_of "$spoor" report x.nettrace
expect_code 0 "report as text"
has out 'spin_here'
