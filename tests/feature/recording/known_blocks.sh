#!/bin/sh
# record --off-cpu recognizes blocks that are like earlier ones: the stack of each block is the right one, none is missing, most are recognized, and code that is replaced at the same address is not taken for the old one.
. "$(dirname "$(realpath "$0")")/../prelude"
is_root || skip "not root: no right to use BPF"
release=$(uname -r)
major=${release%%.*} minor=${release#*.}
minor=${minor%%[!0-9]*}
[ "$major" -gt 5 ] || { [ "$major" = 5 ] && [ "$minor" -ge 15 ]; } || skip "Linux $release cannot recognize blocks"
[ "$(stat -Lc %i /proc/self/ns/pid)" = 4026531836 ] || skip "this is another pid namespace"
chains=$(dirname "$spoor")/tests/block_chains
step=$(dirname "$spoor")/tests/libblock_step

# recorded ARGUMENT...: records `block_chains`; ./said has its own counts, ./chains the user stack of each wait, as functions and as addresses.
recorded() {
	rm -f x.nettrace
	code_of "$spoor" record -v --off-cpu --call-graph dwarf -o x.nettrace -- "$chains" "$@"
	expect_code 0 "recording of block_chains $1"
	cp out said
	has err 'nothing lost'
	"$spoor" events x.nettrace --event cswitch --json >x.json 2>err || fail "no switches"
	# 1 and 2: the waits that the kernel counts for the thread
	value_lines x.json '.[] | select(.fields.State == 1 or .fields.State == 2) | [(.stack // [])[] | select(.module != "kernel")] | (map(.function // "?") | join(" ")) + "|" + (map(.address) | join(" "))' >chains
	"$spoor" events x.nettrace --event SessionEnd --json >end.json 2>err || fail "no end"
}

# count NAME: a count of the recorder.
count() {
	value_lines end.json '.[0].fields as $f | $f.Count[$f.CountName | index($a)]' "$1"
}

# enough SHARE: so many percent of the blocks were recognized.
enough() {
	echo "$(count known_blocks) of $(count blocks) blocks were recognized"
	[ $(($(count known_blocks) * 100)) -ge $(($(count blocks) * $1)) ]
}

# expect_chain FUNCTION COUNT: so many waits in it, all with one and the same stack up to the start of the program.
expect_chain() {
	grep -E "[ ]$1 (.* )?main .*_start\\|" chains >of_chain
	[ "$(wc -l <of_chain)" = "$2" ] || fail "$(wc -l <of_chain) waits in $1, not $2: $(cut -d'|' -f1 chains | sort | uniq -c)"
	[ "$(sort -u of_chain | wc -l)" = 1 ] || fail "several stacks in $1: $(sort -u of_chain | head -n 3)"
}

# A row is matched after the rings have been read twice, which may take long on a busy machine: the more blocks, the more are recognized.
for rounds in 6000 30000; do
	recorded alternate $rounds
	while read -r name waits; do
		expect_chain "$name" "$waits"
	done <said
	enough 50 && break
done
enough 50 || fail "too few blocks are recognized"

[ "$(uname -m)" = x86_64 ] || exit 0
for rounds in 1500 10000; do
	recorded replace $rounds "${step}_24.so" "${step}_8.so"
	# A block between the change and its record has no stack, but never a wrong one.
	while read -r name waits; do
		found=$(cut -d'|' -f1 chains | grep -c " $name main ")
		[ "$found" -le "$waits" ] || fail "$found of $waits waits are said to be in $name: $(cut -d'|' -f1 chains | sort | uniq -c)"
		[ "$found" -ge $((waits / 10)) ] || fail "only $found of $waits waits are said to be in $name"
		[ "$(grep " $name main " chains | sort -u | wc -l)" = 1 ] || fail "several stacks in $name"
	done <said
	enough 50 && break
done
enough 50 || fail "too few blocks are recognized while code is replaced"
