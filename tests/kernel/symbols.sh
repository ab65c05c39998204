#!/bin/sh
# spoor symbols: a recording of a program without symbols gets its names from a symbol file of the same build id, and from no other or damaged file.
. "$(dirname "$(realpath "$0")")/prelude"

command -v strip >/dev/null && command -v objcopy >/dev/null || skip "no strip and objcopy here"
export SPOOR_SYMBOL_CACHE="$scratch/cache"
cp "$target" ./bare && objcopy --only-keep-debug bare bare.debug && strip bare || fail "strip"
id=$(readelf -n bare | sed -n 's/.*Build ID: *//p')
[ -n "$id" ] || skip "the compiler writes no build ids"
cached=cache/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug

"$spoor" record -q -F 499 -o x.nettrace -- ./bare spin 300 2>err || fail "record"

state() {
	"$spoor" symbols list --json x.nettrace >list.json 2>err || fail "symbols list --json"
	json list.json '.images | map(select(.image == "bare" and .build_id == $a and .symbols == $b and .frames > 100 and .functions >= 1)) | length == 1' "$id" "$1"
}
unnamed() {
	state "$1"
	json list.json '.frames_named == 0'
	"$spoor" report -q --native --json x.nettrace >json 2>err || fail "report --json"
	json json '[.processes[].functions[] | select(.module == "bare" and (.name | startswith("bare!sub_") | not))] == []'
}

unnamed absent
"$spoor" report x.nettrace >out 2>err || fail "report"
has out 'native frames have no symbols: spoor symbols list x\.nettrace$'
[ ! -e cache ] || fail "a report makes a cache folder"

# A file that is no symbol file, or has no symbol table, is refused.
echo text >text
code_of "$spoor" symbols import text
expect_code 1 "import of a text"
has err "cannot import 'text': not an ELF file"
code_of "$spoor" symbols import bare
expect_code 1 "import of a program without symbols"
has err "cannot import 'bare': it has no symbol table"

mkdir folder && cp bare.debug text bare folder
code_of "$spoor" symbols import folder
expect_code 0 "import of a folder"
has err '1 symbol file imported'
[ -e "$cached" ] || fail "there is no $cached"
state present
json list.json '.frames_named == .images[0].frames_named and .frames_named > 100'
"$spoor" report -q --json x.nettrace >json 2>err || fail "report --json"
json json 'any(.processes[].functions[]; .name == "spin_here" and .module == "bare" and .self_samples * 3 > .total_samples)'
"$spoor" report x.nettrace >out 2>err || fail "report"
has_no out 'no symbols'
"$spoor" flame -q -o x.folded x.nettrace 2>err || fail "flame"
has x.folded ';main;.*;spin_here '

# A damaged file gives no name, wherever the damage is.
cp "$cached" good
size=$(stat -c %s good)
for at in 0 4 32 600 $((size / 4)) $((size / 2)) $((size * 3 / 4)) $((size - 20)) $((size - 1)); do
	cp good "$cached"
	byte=$(od -An -tu1 -j "$at" -N 1 good | tr -d ' ')
	printf "\\$(printf %o $((byte ^ 1)))" | dd of="$cached" bs=1 seek="$at" conv=notrunc 2>/dev/null
	cmp -s good "$cached" && fail "byte $at is as it was"
	unnamed damaged
done
head -c $((size / 2)) good >"$cached" && unnamed damaged
: >"$cached" && unnamed damaged

# Neither does a valid file of another program.
"$spoor" symbols import "$spoor" 2>err || fail "import of spoor itself"
other=$(find cache -name '*.debug' -size +100k)
[ -s "$other" ] || fail "spoor is not in the cache"
cp "$other" "$cached" && unnamed damaged
rm "$cached" && ln -s "$other" "$cached" && unnamed absent

# Cleaning up by age and by size.
rm "$cached" && cp good "$cached" && touch -d '40 days ago' "$cached"
"$spoor" symbols cache --json >cache.json 2>err || fail "symbols cache --json"
json cache.json '(.files | length) == 2 and .files[0].build_id == $a and .files[0].unused_days == 40 and .size_bytes == (.files | map(.size_bytes) | add)' "$id"
state present
"$spoor" symbols cache --json --unused-days 30 >cache.json 2>err || fail "symbols cache --unused-days"
json cache.json '(.files | length) == 2'
touch -d '40 days ago' "$cached"
"$spoor" symbols cache --json --unused-days 30 >cache.json 2>err || fail "symbols cache --unused-days"
json cache.json '.files | map(.build_id == $a) == [false]' "$id"
"$spoor" symbols import bare.debug 2>err || fail "import"
touch -d '2 days ago' "$other"
"$spoor" symbols cache --json --max-size 1M >cache.json 2>err || fail "symbols cache --max-size"
json cache.json '.files | map(.build_id == $a) == [true]' "$id"
"$spoor" symbols cache --clean >out 2>err || fail "symbols cache --clean"
has out '^0 files, 0 B in '
unnamed absent

# Another user's folder is not trusted.
chmod 777 cache
code_of "$spoor" symbols import bare.debug
expect_code 3 "a cache folder that all users may write"
has err 'cannot be trusted'
