#!/bin/sh
# spoor heap of a real process: every object that the program says it keeps, why it is kept, what came between two snapshots, no session left
# behind; and the processes that have no heap or are gone.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

mkfifo orders
: >ready.kept
sleep 600 >orders &
started="$started $!"
ORDERS=$PWD/orders
export ORDERS
start kept dotnet "$app" heap 200000 >ready.kept
until_true grep -q ready ready.kept || fail "the program does not start"

code_of "$spoor" heap -p $kept -o first.gcdump --json --top 100
expect_code 0 "a heap snapshot"
has err '^first.gcdump  [0-9,]+ objects\.$'
has out '"whole":true,"missing":"",'
has out '"name":"Order","module":"[^"]*Managed.dll","count":200000,"size_bytes":6400000,'
has out '"name":"Note","module":"[^"]*Managed.dll","count":100000,'
has out '"name":"Entry<System.Int32,Order>\[\]"'
has out '"nameless_bytes":0,'
# Exact: all holders retain the array that they share; the keys retain their values (24 bytes each) with a text (124).
has out '"name":"Holder","module":"[^"]*Managed.dll","count":1000,"size_bytes":24000,"retained_bytes":1024024}'
has out '"name":"Key","module":"[^"]*Managed.dll","count":1000,"size_bytes":24000,"retained_bytes":172000}'
has out '"name":"Value","module":"[^"]*Managed.dll","count":1000,"size_bytes":24000,"retained_bytes":148000}'
has out '"name":"Note","module":"[^"]*Managed.dll","count":100000,"size_bytes":2400000,"retained_bytes":14800000}'
[ "$(stat -c %a first.gcdump)" = 600 ] || fail "a snapshot is its owner's alone"

# Why: the static variable, on the shortest way. A file says the same as the process did.
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
# Another tool's session in that moment (a machine-wide recording, say) keeps names back: then once more.
for i in 1 2 3 4 5; do
	code_of "$spoor" heap roots -p $kept --no-file 'No*' --top 1
	[ $code != 0 ] || break
	sleep 1
done
expect_code 0 "roots of a process"
has out '^  \[static var all \(System\.Collections\.Generic\.Dictionary<System\.Int32,Order>\)\]$'
[ "$(echo *.gcdump)" = first.gcdump ] || fail "--no-file saved something"

# Two more orders.
printf mm >orders
sleep 0.5
for i in 1 2 3 4 5; do
	code_of "$spoor" heap -q -p $kept -o second.gcdump
	expect_code 0 "a second snapshot"
	[ ! -s err ] || fail "-q says something"
	code_of "$spoor" heap diff first.gcdump second.gcdump --json
	expect_code 0 "a comparison"
	! grep -q '"nameless_bytes":0,"stream_bytes"' out || break
	sleep 1 # as above
done
has out '"before":{"process":"[^"]*","file":"first.gcdump","utc_ns":[1-9]'
if grep -q '"nameless_bytes":0,"stream_bytes"' out; then
	has out '"name":"Order","count":2,"size_bytes":64}'
else
	has out '"count":200002,"size_bytes":6400064,'
	code_of "$spoor" heap diff first.gcdump second.gcdump
	has out '^NOT COMPARABLE: types without a name in second.gcdump, '
fi

# Small buffers do: it is read while the collection runs. Ten in a row leave no session open (a process has 64).
for i in 1 2 3 4 5 6 7 8 9 10; do
	code_of "$spoor" heap -q --no-file --buffersize 64 -p $kept --json --top 8
	expect_code 0 "snapshot $i with a small buffer"
	has out '"whole":true'
	has out '"count":200002,"size_bytes":6400064,' # without a name, should another tool be attached here
done
code_of "$spoor" ps --json -p $kept
expect_code 0 "ps afterwards"
has out '"reachable":true'

# A process that collects again and again on a busy machine: its own collections are not taken for the snapshot's, and it ends. A snapshot
# with lost blocks is marked in its name and content; one without objects is not saved.
: >ready.collects
start collects dotnet "$app" collects 300000 >ready.collects
until_true grep -q ready ready.collects || until_true grep -q ready ready.collects || fail "the program does not start"
for i in 1 2 3; do
	code_of timeout 100 "$spoor" heap -p $collects -o again$i.gcdump --json --top 100
	[ $code != 0 ] || break
	[ ! -e again$i.gcdump ] || fail "exit code $code and a file under the name of a whole snapshot"
done
expect_code 0 "a snapshot of a process that collects again and again"
has out '"count":300000,"size_bytes":9600000,'
code_of timeout 100 "$spoor" heap -p $collects -o small_buffer.gcdump --buffersize 1
if [ $code = 0 ]; then
	has out '^whole; ' # a machine that is fast enough
elif [ -e small_buffer.incomplete.gcdump ]; then
	[ ! -e small_buffer.gcdump ] || fail "part of a heap has the name of a whole one"
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

# What is not there, does not answer, or is no .NET process.
code_of "$spoor" heap -p $$ --no-file
expect_code 1 "a shell's heap"
has err "^no heap snapshot of process $$: "
code_of "$spoor" heap -p 4194303 --no-file
expect_code 1 "a process that is not there"
kill -STOP $kept
code_of timeout 20 "$spoor" heap -p $kept --no-file --timeout 1s
expect_code 1 "a process that is stopped"
kill -CONT $kept
code_of "$spoor" heap -p $kept -o /dev/full
expect_code 1 "a full disk"
has err "^cannot write '/dev/full': No space left on device"
kill -9 $kept
