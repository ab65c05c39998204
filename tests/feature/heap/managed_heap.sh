#!/bin/sh
# spoor heap of a real process has every object that the program keeps, paths to the objects, and differences between two snapshots. No session is left.
# Processes without a heap have a message.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

mkfifo orders
: >ready.kept
sleep 6000 >orders &
started="$started $!"
ORDERS=$PWD/orders
export ORDERS
start kept dotnet "$app" heap 200000 >ready.kept
until_true grep -q ready ready.kept || fail "the program does not start"

code_of "$spoor" heap -p $kept -o first.gcdump --json --top 100
expect_code 0 "a heap snapshot"
has err '^first.gcdump  [0-9,]+ objects\.$'
# has_type NAME COUNT SIZE [RETAINED]: a type of the program with these numbers.
has_type() {
	json out 'any(.types[]; .name == $a and (.module | endswith("Managed.dll")) and .count == ($b | tonumber) and .size_bytes == ($c | tonumber))' "$1" "$2" "$3"
	[ $# -lt 4 ] || json out 'any(.types[]; .name == $a and .retained_bytes == ($b | tonumber))' "$1" "$4"
}
json out '.whole and .missing == "" and .nameless_bytes == 0'
has_type Order 200000 6400000
json out 'any(.types[]; .name == "Entry<System.Int32,Order>[]")'
# All holders retain the array that they share. The keys retain their values (24 bytes each) with a text (124 bytes).
has_type Holder 1000 24000 1024024
has_type Key 1000 24000 172000
has_type Value 1000 24000 148000
has_type Note 100000 2400000 14800000
[ "$(stat -c %a first.gcdump)" = 600 ] || fail "the snapshot is not private to its owner"

# The path from the static variable, from a file and from the process.
code_of "$spoor" heap roots first.gcdump Note
expect_code 0 "roots of a file"
has out '^100,000 objects, '
has out '^  \[static var all \(System\.Collections\.Generic\.Dictionary<System\.Int32,Order>\)\]$'
has out '^  Order$'
code_of "$spoor" heap roots first.gcdump Value
expect_code 0 "roots of the values of a conditional weak table"
has out '^1,000 objects, 24\.0 kB, and with what they alone keep 148 kB$'
has out '^  Key\[\]$'
has out '^  Key$'
has out '^  Value$'
# Type names are missing while another tool has a session (a recording of the whole machine, for example): try again.
for i in 1 2 3 4 5; do
	code_of "$spoor" heap roots -p $kept --no-file 'No*' --top 1
	[ $code != 0 ] || break
	sleep 1
done
expect_code 0 "roots of a process"
has out '^  \[static var all \(System\.Collections\.Generic\.Dictionary<System\.Int32,Order>\)\]$'
[ "$(echo *.gcdump)" = first.gcdump ] || fail "--no-file saved something"

# Two more orders.
has_names() {
	[ "$(value out .nameless_bytes)" = 0 ]
}
any_new() {
	[ "$(value out 'any(.diff[]; .name == "Order" and .count == 2 and .size_bytes == 64)')" = true ]
}
printf mm >orders
for i in 1 2 3 4 5 6 7 8 9 10; do
	code_of "$spoor" heap -q -p $kept -o second.gcdump
	expect_code 0 "a second snapshot"
	[ ! -s err ] || fail "-q prints something"
	code_of "$spoor" heap diff first.gcdump second.gcdump --json
	expect_code 0 "a comparison"
	# The program takes the orders some time after they were written. Names may be missing as above.
	! { has_names && any_new; } || break
	sleep 1
done
json out '.before.file == "first.gcdump" and .before.utc_ns > 0'
if has_names; then
	any_new || fail "the difference has no two orders"
else
	code_of "$spoor" heap diff first.gcdump second.gcdump
	has out '^NOT COMPARABLE: types without a name in second.gcdump, '
fi

# Small buffers are enough, because spoor reads them while the collection runs. Ten snapshots leave no session (a process has 64 slots).
for i in 1 2 3 4 5 6 7 8 9 10; do
	code_of "$spoor" heap -q --no-file --buffersize 64 -p $kept --json --top 8
	expect_code 0 "snapshot $i with a small buffer"
	json out '.whole'
	json out 'any(.types[]; .count == 200002 and .size_bytes == 6400064)' # it has no name while another tool has a session
done
code_of "$spoor" ps --json -p $kept
expect_code 0 "ps afterwards"
json out '.processes[0].reachable'

# A process that collects all the time: spoor does not mistake its collections for the one of the snapshot. A snapshot with lost blocks is marked in
# its name and content; one without objects is not saved.
: >ready.collects
start collects dotnet "$app" collects 300000 >ready.collects
until_true grep -q ready ready.collects || fail "the program does not start"
for i in 1 2 3; do
	code_of timeout 200 "$spoor" heap -p $collects -o again$i.gcdump --json --top 100
	[ $code != 0 ] || break
	[ ! -e again$i.gcdump ] || fail "exit code $code and a file under the name of a whole snapshot"
done
expect_code 0 "a snapshot of a process that collects again and again"
json out 'any(.types[]; .count == 300000 and .size_bytes == 9600000)'
code_of timeout 200 "$spoor" heap -p $collects -o small_buffer.gcdump --buffersize 1
if [ $code = 0 ]; then
	has out '^whole; ' # this machine is fast enough
elif [ -e small_buffer.incomplete.gcdump ]; then
	[ ! -e small_buffer.gcdump ] || fail "a part of a heap has the name of a whole one"
	has err '^small_buffer.incomplete.gcdump  [0-9,]+ objects?, not the whole heap\.$'
	has err 'try again with --buffersize 4\.$'
	code_of "$spoor" heap report small_buffer.incomplete.gcdump
	expect_code 1 "a report of part of a heap"
	has out '^NOT WHOLE: .*lost'
	code_of "$spoor" heap diff first.gcdump small_buffer.incomplete.gcdump
	expect_code 1 "a comparison with part of a heap"
	has out '^NOT WHOLE: small_buffer.incomplete.gcdump: .*lost.*; the differences are wrong$'
else
	has err '^no heap snapshot of process [0-9]+: its objects were lost on the way'
fi
kill -9 $collects

# A process that does not exist, does not answer, or is no .NET process.
code_of "$spoor" heap -p $$ --no-file
expect_code 1 "a shell's heap"
has err "^no heap snapshot of process $$: "
code_of "$spoor" heap -p 4194303 --no-file
expect_code 1 "a process that is not there"
kill -STOP $kept
code_of timeout 100 "$spoor" heap -p $kept --no-file --timeout 1s
expect_code 1 "a process that is stopped"
kill -CONT $kept
code_of "$spoor" heap -p $kept -o /dev/full
expect_code 1 "a full disk"
has err "^cannot write '/dev/full': No space left on device"
kill -9 $kept
