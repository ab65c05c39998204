#!/bin/sh
# answers.sh BUILD-FOLDER: the analyses of spoor report have TraceEvent's figures of the same file (Answers.cs): exceptions, allocations, contentions, compiled methods,
# changes of thread pools. Skipped as run.sh is.
set -eu
. "$(dirname "$(realpath "$0")")/prelude"
work=$out/answers
rm -rf "$work"
mkdir "$work"
program managed
managed=$program
program answered
answered=$program
cd "$work"
run='' recorder=''

stop() {
	for each in $recorder $run; do
		kill -9 "$each" 2>/dev/null || :
	done
	wait
}
trap stop EXIT

# compared NAME WORD PROGRAM MODE AMOUNT: traces the program until it has printed the word, and compares.
compared() {
	name=$1 word=$2 && shift 2
	rm -f go end
	dotnet "$@" >"$name.out" &
	run=$!
	until_true grep -q ready "$name.out" || fail "the program $name does not start"
	"$build/spoor" trace -q -p $run --clrevents gc+exception+contention+threading+jit+jittracing --clreventlevel verbose -o "$name.nettrace" </dev/null &
	recorder=$!
	until_true test -s "$name.nettrace" || fail "the trace of $name does not start"
	sleep 1
	touch go
	until_true grep -q "$word" "$name.out" || fail "the program $name does not end its work"
	sleep 0.5
	kill -INT $recorder
	wait $recorder || fail "the trace of $name failed"
	touch end
	wait $run || fail "the program $name did not end well"
	run='' recorder=''
	mkdir -p "$name"
	for answer in exceptions alloc locks threadpool jit; do
		"$build/spoor" report --$answer --json --raw-names "$name.nettrace" >"$name/$answer.json"
	done
	echo "$name.nettrace:"
	dotnet "$oracle" answers "$name.nettrace" "$name"
}

compared throws thrown "$managed" events 400
compared allocates allocated "$answered" allocate 60
compared contends contended "$answered" contend 15
compared starves starved "$answered" starve 1500
