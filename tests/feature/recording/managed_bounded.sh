#!/bin/sh
# A storm of exceptions grows a recording by less than 256 kB a second. Most of them are not observed, so that they cost the program little; the reports' totals are
# those of the program all the same, by the runtime's counter, with stacks and without.
own_machine=yes
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# near NUMBER: it is the number of exceptions that were thrown, but for those that the program's thread is throwing at a moment when the counter is read.
near() {
	[ "$1" -ge $((thrown - 3)) ] && [ "$1" -le $((thrown + 3)) ]
}

# accounted: the recording has all exceptions so far.
accounted() {
	"$spoor" report --json "$file" >so_far.json 2>so_far.err &&
		near "$(value so_far.json '[.events[] | select(.name | test("Exception/Start$")) | .count] | add')"
}

# storm NAME option...: records 3 s of exceptions as fast as the program can throw. Sets $thrown, and $size in bytes.
storm() {
	file=$1.nettrace && shift
	rm -f go end
	begin one throws 3000
	record_opened 1 "$file" record -p $one "$@"
	before=$(stat -c %s "$file")
	touch go
	until_true grep -q thrown ready.one || fail "the program does not end its work"
	size=$(($(stat -c %s "$file") - before))
	thrown=$(sed -n 's/.*thrown \([0-9]*\).*/\1/p' ready.one)
	[ "$thrown" -gt 6000 ] || skip "this machine throws only $thrown exceptions in 3 s"
	# The counter is read once a second. Where events were lost, the sum is smaller.
	for _ in $(seq 40); do
		! accounted || break
		sleep 0.25
	done
	kill -INT $recorder
	wait $recorder || fail "the recording failed: $(cat "$file.err")"
	touch end
	wait $one
	"$spoor" report --json "$file" >report.json || fail "report of $file"
}

# total: written, counted, and lost exceptions together are those that the program threw.
total() {
	written=$(value report.json '[.events[] | select(.name | test("Exception/Start$")) | .count] | add')
	lost=$(value report.json '[.losses[] | select(.unit == "events" and .moved != true) | .count] | add // 0')
	[ "$lost" = 0 ] || [ "$written" -lt "$thrown" ] || fail "events were lost, but all are counted"
	[ "$lost" != 0 ] || near "$written" || fail "$written exceptions in the report, not $thrown"
	json report.json '.events_counted > 0 and .events_counted < ($a | tonumber)' "$thrown"
}

storm plain
total
[ "$size" -lt $((256000 * 4)) ] || fail "the file grew by $size bytes in 4 s"
has plain.nettrace.err 'samples and [0-9,]+ \.NET events \([0-9,]+ more are counted only\) in '
"$spoor" events --summary --event Exception/Start plain.nettrace >summary 2>summary.err || fail "events --summary"
[ "$(awk '/Exception\/Start/ { gsub(",", "", $1); print $1 }' summary)" = "$written" ] || fail "events --summary: $(cat summary)"
has summary.err '^[0-9,]+ more events were only counted, not written'
"$spoor" report --exceptions --json plain.nettrace >exceptions.json || fail "report --exceptions"
"$spoor" report --exceptions plain.nettrace >exceptions || fail "report --exceptions"
has exceptions '^  only counted [0-9,]+ of them, '
has exceptions '^  not observed [0-9,]+ of them, '
json exceptions.json '[.processes[].exception_count] | add == ($a | tonumber)' "$written"
json exceptions.json '.processes[0] | .not_observed > .exception_count / 3 and .estimated == 0'

storm stacks --profile exceptions
total
"$spoor" flame --event Exception/Start -f folded -o folded stacks.nettrace 2>flame.err || fail "flame: $(cat flame.err)"
has flame.err ' events \([0-9,]+ of them only counted: '
"$spoor" report --exceptions --json stacks.nettrace >exceptions.json || fail "report --exceptions"
observed=$((written - $(value exceptions.json '.processes[0] | .not_observed + .estimated')))
[ "$(frames folded 'Told\.Flood\(int\);Told\.Throw\(\)')" = "$observed" ] || fail "not all exceptions that were observed have their stack: $(cat folded)"

storm all --event-rate 0
json report.json '.events_counted == 0'
