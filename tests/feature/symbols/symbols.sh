#!/bin/sh
# spoor symbols: a recording of a program without symbols gets its names from a symbol file of the same build id, and from no other or damaged file.
. "$(dirname "$(realpath "$0")")/../prelude"

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
has out "native frames have no symbols: $spoor symbols fetch x\.nettrace\$"
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
has_no out 'no symbols\) +bare'
"$spoor" flame -q -o x.folded x.nettrace 2>err || fail "flame"
has x.folded ';main;.*;spin_here '

# Written into the recording, the names are there without the cache, and nothing else has changed.
named() {
	SPOOR_SYMBOL_CACHE=$scratch/none "$spoor" report -q --json "$1" >json 2>err || fail "report of $1"
	json json 'any(.processes[].functions[]; .name == "spin_here" and .module == "bare" and .self_samples * 3 > .total_samples)'
	json json '[.processes[].functions[] | select(.module == "bare" and .named == false)] == []'
}
events_of() {
	SPOOR_SYMBOL_CACHE=$scratch/none "$spoor" events "$1" | sed '/ProcessSymbol/ s/ End=.*//'
}
chmod 640 x.nettrace && cp -p x.nettrace y.nettrace
code_of "$spoor" symbols apply y.nettrace
expect_code 0 "symbols apply"
has err '^y\.nettrace: names for [0-9,]+ frames in [0-9]+ functions\.$'
named y.nettrace
[ "$(stat -c %a y.nettrace)" = 640 ] || fail "the mode of y.nettrace is $(stat -c %a y.nettrace)"
events_of x.nettrace >x.events && events_of y.nettrace >y.events && cmp x.events y.events || fail "apply has changed other events"
code_of "$spoor" symbols apply y.nettrace
has err 'has names for all|no symbol file here names'
code_of "$spoor" symbols apply -o z.nettrace x.nettrace
expect_code 0 "symbols apply -o"
cmp y.nettrace z.nettrace || fail "apply -o gives another file"
rm z.nettrace
"$spoor" symbols list --json y.nettrace >list.json 2>err || fail "symbols list --json"
code_of "$spoor" symbols apply -o z.nettrace y.nettrace
if [ "$(value list.json '.images | length')" = 0 ]; then
	expect_code 0 "symbols apply -o of a complete recording"
	cmp y.nettrace z.nettrace || fail "apply -o of a complete recording gives another file"
else
	# A sample was taken in a library without symbols, for example in libc at the program's start.
	expect_code 1 "symbols apply -o without a further name"
	has err 'no symbol file here names'
	[ ! -e z.nettrace ] || fail "apply -o without a further name writes a file"
fi
SPOOR_SYMBOL_CACHE=$scratch/none "$spoor" record -q -z -F 499 -o p.nettrace.zst -- ./bare spin 300 2>err || fail "record -z"
"$spoor" symbols apply -q p.nettrace.zst 2>err || fail "apply to a packed recording"
named p.nettrace.zst
[ "$(find . -name '*.old' -o -name '.spoor-*' | wc -l)" = 0 ] || fail "apply leaves files: $(ls -A)"

# A recording that is still written, one that is cut, and a trace of another version stay as they are.
start busy ./bare spin 600000
start recorder env SPOOR_SYMBOL_CACHE="$scratch/none" "$spoor" record -q -o live.nettrace -F 499 -p "$busy" --duration 600s
live_named() {
	"$spoor" symbols list --json live.nettrace >live.json && [ "$(value live.json .frames_named)" -gt 0 ]
}
until_true live_named || fail "nothing of the busy program is recorded"
code_of "$spoor" symbols apply live.nettrace
expect_code 1 "apply to a recording in progress"
has err "'live\.nettrace' is still being written"
kill -INT "$recorder"
wait "$recorder"
kill "$busy"
"$spoor" symbols apply -q live.nettrace 2>err || fail "apply to an ended recording"
named live.nettrace
start sleeping sh -c 'exec sleep 60' 9>>x.nettrace
cp -p x.nettrace before
code_of "$spoor" symbols apply x.nettrace
expect_code 1 "apply to a file that is open for writing"
has err "'x\.nettrace' is still being written"
kill "$sleeping" && wait "$sleeping" 2>/dev/null
head -c $(($(stat -c %s x.nettrace) - 7)) x.nettrace >cut.nettrace && cp cut.nettrace cut.before
code_of "$spoor" symbols apply cut.nettrace
expect_code 1 "apply to a cut recording"
cmp cut.nettrace cut.before || fail "a cut recording was changed"
ln -s x.nettrace link.nettrace
code_of "$spoor" symbols apply link.nettrace
[ "$code" != 0 ] || fail "a link was replaced"
cmp x.nettrace before || fail "x.nettrace was changed"

# A recorder takes names from the cache, too.
"$spoor" record -q -F 499 -o w.nettrace -- ./bare spin 300 2>err || fail "record with a cache"
named w.nettrace

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

# Holes of a file stay holes in the cache, and do not count.
cp bare.debug sparse && truncate -s 300M sparse
"$spoor" symbols import sparse 2>err || fail "import of a file with holes"
[ "$(du -sk cache | cut -f1)" -lt 10000 ] || fail "the cache has $(du -sh cache)"
"$spoor" symbols cache --json >cache.json 2>err || fail "symbols cache --json"
json cache.json '(.files | length) == 1 and .size_bytes < 10000000'
state present

# Another user's folder is not trusted.
chmod 777 cache
code_of "$spoor" symbols import bare.debug
expect_code 3 "a cache folder that all users may write"
has err 'cannot be trusted'
