#!/bin/sh
# How a recording ends: signals, one or two of them, and kill -9 at any moment. The file always opens, with names.
. "$(dirname "$(realpath "$0")")/prelude"

"$target" spin 60000 &
burner=$!
started="$started $burner"

record() {
	start recorder "$spoor" record -q -F 999 -p $burner -o "$1"
	until_true test -s "$1" || fail "no file appears"
}

ended() {
	wait $recorder && code=0 || code=$?
}

for signal in INT TERM HUP; do
	record x.nettrace
	sleep 0.4
	# A shell's background programs ignore SIGINT; the recorder must take it all the same.
	kill -$signal $recorder
	ended
	expect_code 0 "SIG$signal"
	code_of "$spoor" report --json x.nettrace
	expect_code 0 "report after SIG$signal"
	has out '"complete":true'
	has out '"name":"spin_here"'
	kill -0 $burner || fail "SIG$signal ended the target too"
done

record x.nettrace
sleep 0.6
kill -INT $recorder
kill -INT $recorder
kill -INT $recorder 2>/dev/null
ended
expect_code 0 "a second signal"
code_of "$spoor" report --json x.nettrace
expect_code 0 "report after a second signal"
has out '"name":"spin_here"'

# Killed: at most about a second is missing, and names are there.
for moment in 0.0 0.1 1.3 2.2; do
	rm -f x.nettrace
	record x.nettrace
	sleep $moment
	kill -9 $recorder
	ended
	code_of "$spoor" report --json x.nettrace
	expect_code 0 "report of a recording killed after $moment s"
	has out '"complete":false'
	case $moment in
	2.2)
		has out '"name":"spin_here"'
		samples=$(number out samples)
		[ "$samples" -gt 1000 ] || fail "only $samples of about 2200 samples are there after a kill at 2.2 s"
		code_of "$spoor" report x.nettrace
		expect_code 0 "report as text"
		has out 'spin_here'
		;;
	1.3) has out '"name":"spin_here"' ;;
	esac
done
