#!/bin/sh
# Methods that a program compiles more than 10 s after its start have names, although spoor requests no event for each method then.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

begin late late 1500
begin freed dynamic 600000
begin unloaded collectible 600000
kill -STOP $freed $unloaded # they would compute for nothing
sleep 10.5 # older than that, a runtime is asked in another way
kill -CONT $freed $unloaded

# Methods that are called for the first time, one of them generic, one generated at run time: a rundown at the end of the recording names them.
record_opened 1 late.nettrace record -q -F 499 -p $late
first=$recorder
record_opened 2 freed.nettrace record -q -F 499 -p $freed,$unloaded
second=$recorder
used_freed=$(used $freed) used_unloaded=$(used $unloaded)
touch go
until_true grep -q done ready.late || fail "the program does not end its work"
until_true used_more $freed "$used_freed" 2500 && until_true used_more $unloaded "$used_unloaded" 2500 || fail "the programs get no CPU time"
kill -INT $first $second
wait $first || fail "no recording: $(cat late.nettrace.err)"
"$spoor" report --json late.nettrace >out 2>err || fail "no report: $(cat err)"
json out 'any(.sessions[].opened[]; test("^live Microsoft-Windows-DotNETRuntime:0x[0-9a-f]+:4, 16 MB"))'
folded late.nettrace late.folded
at_least late.folded 50 ';Late\.Plain\(int\)'
at_least late.folded 50 ';Late\.Of[^;]*\(int\)'
at_least late.folded 50 ';[^;]*Made_1000000\(int\)'
[ "$(frames late.folded ';\[?JIT')" -le 5 ] || fail "$(frames late.folded ';\[?JIT') samples without a name: $(grep -m 3 ';\[?JIT' late.folded)"

# Methods that are freed before a rundown: methods generated at run time have an event at their end; with collectible assemblies spoor requests an event for each method.
wait $second || fail "no recording: $(cat freed.nettrace.err)"
"$spoor" report --json freed.nettrace >out 2>err || fail "no report: $(cat err)"
json out 'any(.sessions[]; .pid == ($a | tonumber) and any(.opened[]; test("^methods Microsoft-Windows-DotNETRuntime:0x[0-9a-f]+:5, 16 MB")))' $unloaded
"$spoor" flame freed.nettrace --from 1s --format folded -o - >freed.folded 2>err || fail "no flame graph"
for kind in Made Unloaded; do
	named=$(grep -oE "${kind}_[0-9]+" freed.folded | sort -u | wc -l)
	[ "$named" -ge 10 ] || fail "only $named methods $kind have samples"
done

# With too few descriptors for an event of each thread, the CPUs are sampled. Only the selected process is queried for its methods.
begin posed threads 600000
until_true grep -q posed ready.posed || fail "the program has not all its threads"
(ulimit -n 128 && exec "$spoor" record -v -F 499 -p $posed --duration 4s -o few.nettrace) >out 2>err || fail "no recording with few files: $(cat err)"
has err '^rings +[0-9]+ of [^,]*, [0-9]+ events of whole CPUs, of which other processes'
"$spoor" report -v few.nettrace >out 2>err || fail "no report: $(cat err)"
has out "^opened in Managed \\($posed\\): "
for pid in $late $freed $unloaded $posed; do
	until_true no_session $pid || fail "a session is left: $(sessions $pid)"
done
exit 0
