#!/bin/sh
# record --call-graph dwarf finds the callers of code without frame pointers, up to the start of the thread, and counts why a stack ends earlier.
. "$(dirname "$(realpath "$0")")/../prelude"

unframed=$(dirname "$spoor")/tests/unframed
case $(uname -m) in
x86_64 | aarch64) ;;
*) skip "stacks are not unwound on $(uname -m)" ;;
esac

# record_unwound MODE: records the program to x.nettrace, its folded stacks to x.folded, its report to json.
record_unwound() {
	code_of "$spoor" record -F 499 --no-events --call-graph dwarf -o x.nettrace -- "$unframed" "$1" 400
	expect_code 0 "record $1"
	has err '^stacks +[0-9.]+ % of [0-9]+ stacks reach the start of their thread'
	folded x.nettrace x.folded
	"$spoor" report --json x.nettrace >json 2>err || fail "report --json"
}

# Leaves of libc, called from libc, called from a comparison that libc calls. By frame pointers most of these chains have one or two frames.
record_unwound sort
total=$(frames x.folded .)
[ "$total" -ge 30 ] || fail "only $total samples"
whole=$(frames x.folded ';main;.*sort_numbers')
[ $((whole * 10)) -ge $((total * 9)) ] || fail "$whole of $total stacks have main and sort_numbers"
[ "$(frames x.folded ';main;.*sort_numbers.*;compare_texts;.*printf')" -ge 5 ] || fail "no chain through the comparison"
json json '.unwinding.ends.start * 100 >= .unwinding.stacks * 97 and .unwinding.stacks > 0'
json json '([.unwinding.ends[]] | add) == .unwinding.stacks'
"$spoor" report x.nettrace >out 2>err || fail "report"
has out '^[0-9.]+ % of [0-9]+ stacks reach the start of their thread'

# Deeper than the copy: the stack ends there, in the right order, and is counted.
record_unwound deep
json json '.unwinding.ends.copy * 2 > .unwinding.stacks'
[ "$(frames x.folded ';dig.*;dig.*;sort_numbers')" -ge 10 ] || fail "no frames below the copy's end"

# Through the frame that the kernel makes for a handler, to what was interrupted.
record_unwound signal
json json '.unwinding.ends.start * 100 >= .unwinding.stacks * 97'
[ "$(frames x.folded ';main;.*raise_signal.*;handle.*;sort_numbers')" -ge 10 ] || fail "no chain through the handler"

# A handler with its own stack: the other stack is not in the copy.
record_unwound switched
json json '.unwinding.ends.switched * 2 > .unwinding.stacks'
[ "$(frames x.folded '(^|;)handle.*;sort_numbers')" -ge 10 ] || fail "no frames of the handler"

# auto takes large copies here, as small ones give shorter stacks.
code_of "$spoor" record -F 999 --no-events --call-graph auto -o x.nettrace -- "$unframed" sort 1000
expect_code 0 "record --call-graph auto"
"$spoor" report --json x.nettrace >json 2>err || fail "report --json"
json json '.unwinding.ends.start * 100 >= .unwinding.stacks * 97 and .unwinding.stacks > 100'

# By frame pointers nothing is unwound.
"$spoor" record -q -o x.nettrace --call-graph fp -- "$unframed" sort 100 2>err || fail "record --call-graph fp"
"$spoor" report --json x.nettrace >json 2>err || fail "report --json"
json json 'has("unwinding") | not'
