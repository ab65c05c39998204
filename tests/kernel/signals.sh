#!/bin/sh
# A recording that ends by one or more signals, or by SIGKILL at any time, can be read and has names.
. "$(dirname "$(realpath "$0")")/prelude"

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

# SIGKILL: about one second is missing at most, and the rest has names. The times are CPU time of the target in milliseconds.
for moment in 0 100 1500 3000; do
	rm -f x.nettrace
	record x.nettrace
	until_true used_more $burner "$before" $moment || fail "the target gets no CPU time"
	kill -9 $recorder
	ended
	code_of "$spoor" report --json x.nettrace
	expect_code 0 "report of a recording killed after $moment ms"
	json out '.recording.complete == false'
	case $moment in
	3000)
		json out "$spins"
		samples=$(value out .samples)
		[ "$samples" -gt 1000 ] || fail "only $samples of about 3000 samples are there after SIGKILL at 3 s"
		code_of "$spoor" report x.nettrace
		expect_code 0 "report as text"
		has out 'spin_here'
		;;
	1500) json out "$spins" ;;
	esac
done
