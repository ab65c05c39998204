#!/bin/sh
# Samples in a program without symbols are grouped by function, by the bounds in its unwind table, in the file and in every output.
. "$(dirname "$(realpath "$0")")/../prelude"

command -v strip >/dev/null || skip "no strip here"
# Not at its own path, beside which a debug file could be; the addresses are those of the program with symbols.
cp "$target" ./bare && strip ./bare || fail "strip"
bounds=$(nm "$target" | awk '$3 == "spin_here" { sub(/^0+/, "", $1); print "sub_" $1 }')
[ -n "$bounds" ] || fail "the target has no function spin_here"

code_of "$spoor" record -F 499 -o x.nettrace -- ./bare spin 300
expect_code 0 "record"
has err 'in images without symbols \(shown by function bounds\)'

# JSON and folded stacks of --native have the function, and no address beside it.
"$spoor" report --json x.nettrace >json 2>err || fail "report --json"
json json 'any(.processes[].functions[]; .name == "bare!" + $a and .named == false and .self_samples * 3 > .total_samples)' "$bounds"
json json '[.processes[].functions[] | select(.name | startswith("bare+"))] == []'
"$spoor" report --native x.nettrace >out 2>err || fail "report --native"
has out "bare!$bounds +bare"
"$spoor" report --callers "bare!$bounds" x.nettrace >out 2>err || fail "report --callers"
has out "bare!sub_"
"$spoor" flame --native -o x.folded x.nettrace 2>err || fail "flame --native"
has x.folded ";bare!sub_[0-9a-f]+;.*bare!$bounds"

# By default they are one row, and one frame, a module.
"$spoor" report x.nettrace >out 2>err || fail "report"
has out 'bare \(no symbols\) +bare'
has_no out 'sub_'
"$spoor" flame -o x.folded x.nettrace 2>err || fail "flame"
has x.folded ';bare \(no symbols\)'
has_no x.folded 'sub_'
