#!/bin/sh
# Names of code that a program compiles long after its start. Its runtime does not tell of it, which costs it the less; what is hit gets its name all the same.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

begin late late 3000
begin freed dynamic 60000
begin unloaded collectible 60000
sleep 10.5

# Methods that nobody has called before, a generic one and one made at run time among them: a rundown at the recording's end names them.
start first "$spoor" record -q -F 499 -p $late --duration 4s -o late.nettrace 2>late.err
start second "$spoor" record -q -F 499 -p $freed,$unloaded --duration 4s -o freed.nettrace 2>freed.err
sleep 1.5
touch go
wait $first || fail "no recording: $(cat late.err)"
"$spoor" report --json late.nettrace >out 2>err || fail "no report: $(cat err)"
has out '"live Microsoft-Windows-DotNETRuntime:0x[0-9a-f]+:4, 16 MB'
folded late.nettrace late.folded
at_least late.folded 50 ';Late\.Plain\(int\)'
at_least late.folded 50 ';Late\.Of[^;]*\(int\)'
at_least late.folded 50 ';[^;]*Made_1000000\(int\)'
[ "$(frames late.folded ';\[?JIT')" -le 5 ] || fail "$(frames late.folded ';\[?JIT') samples without a name: $(grep -m 3 ';\[?JIT' late.folded)"

# Methods that are freed before any rundown: those made at run time are named when they go; where assemblies come that can be unloaded, methods are told of again.
wait $second || fail "no recording: $(cat freed.err)"
"$spoor" report --json freed.nettrace >out 2>err || fail "no report: $(cat err)"
has out '"pid":'$unloaded',"name":"Managed","opened":\[[^]]*"methods Microsoft-Windows-DotNETRuntime:0x[0-9a-f]+:5, 16 MB'
"$spoor" flame freed.nettrace --from 2s --format folded -o - >freed.folded 2>err || fail "no flame graph"
for kind in Made Unloaded; do
	named=$(grep -oE "${kind}_[0-9]+" freed.folded | sort -u | wc -l)
	[ "$named" -ge 10 ] || fail "of some 20 to 40 methods $kind $named are seen"
done

# The CPUs are sampled, where an event for each thread on each CPU would be too many too; only the process that was chosen is asked all the same.
begin posed threads 60000
until_true grep -q posed ready.posed || fail "the program has not all its threads"
(ulimit -n 128 && exec "$spoor" record -v -F 499 -p $posed --duration 1s -o few.nettrace) >out 2>err || fail "no recording with few files: $(cat err)"
has err '^rings +[0-9]+ of [^,]*, [0-9]+ events of whole CPUs, of which other processes'
"$spoor" report -v few.nettrace >out 2>err || fail "no report: $(cat err)"
has out "^opened in Managed \\($posed\\): "
for pid in $late $freed $unloaded $posed; do
	[ "$("$(dirname "$spoor")/tests/probe" slots $pid 2>err)" = 64 ] || fail "a session stays: $(cat err)"
done
exit 0
