#!/bin/sh
# A program that allocates much is observed in short windows, so that the stacks of its allocations cost it little; report --alloc scales what was seen, and says so.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
. "$here/faults_prelude"

# allocated NAME option...: records 6 s, with the bytes of large objects, of the collector's segments beside them, in $bytes and $segments.
allocated() {
	file=$1.nettrace && shift
	code_of "$spoor" record -q -p $subject --profile alloc --duration 6s -o "$file" "$@"
	expect_code 0 "record"
	"$spoor" report --alloc --json "$file" >alloc.json || fail "report --alloc of $file"
	bytes=$(value alloc.json '.processes[0].large_bytes')
	segments=$("$spoor" events --json --event GC/CreateSegment "$file" 2>/dev/null | wc -l)
	[ "$segments" -gt 100 ] || skip "this machine collects only $segments segments in 6 s"
}

serve large 2
allocated whole --event-rate 0
json alloc.json '.processes[0] | .observed_share == 1 and .events > 500'
[ "$(value alloc.json '.processes[0].events')" -gt 6000 ] || skip "this machine allocates too slowly"
a_segment=$((bytes / segments))
allocated windows
json alloc.json '.processes[0] | .observed_share < 0.6'
"$spoor" report --alloc windows.nettrace >text || fail "report --alloc"
has text '^  observed +in [0-9.]+ % of the time, as there were too many; scaled to the whole of it$'
has text 'in Faults\.Pictures\.Scale\(\)'
# The flame graph has the same bytes, but for the rounding of each stack.
"$spoor" flame --alloc --format folded -o - windows.nettrace >folded || fail "flame --alloc"
folded=$(awk '{ sum += $NF } END { printf "%.0f", sum }' folded)
json alloc.json '[.processes[].allocated_bytes] | add - ($a | tonumber) | . > -($b | tonumber) and . < ($b | tonumber)' "$folded" 10000
# A machine with other work allocates in bursts: not more than a factor of three. Without the scale it would be ten.
[ $((bytes / segments)) -gt $((a_segment / 3)) ] && [ $((bytes / segments)) -lt $((a_segment * 3)) ] ||
	fail "$((bytes / segments)) bytes a segment, not $a_segment"
until_true no_session $subject || fail "a session is left"
