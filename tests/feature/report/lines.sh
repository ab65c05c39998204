#!/bin/sh
# report --lines and flame --lines show source lines and inlined functions: from the program, its separate debug file, and the symbol cache, by build id only.
. "$(dirname "$(realpath "$0")")/../prelude"

command -v "${CC:-cc}" >/dev/null && command -v objcopy >/dev/null || skip "no compiler or objcopy here"
mkdir src cache
export SPOOR_SYMBOL_CACHE="$scratch/cache"
chmod 700 cache
# The line numbers below are those of this text.
cat >src/busy.c <<'END'
#include <stdlib.h>
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	x ^= x << 13;
	return x ^ x >> 17;
}
__attribute__((noinline)) unsigned burn(unsigned n)
{
	unsigned s = 1;
	for (unsigned i = 0; i < n; i++)
		s += mix(i ^ s);
	return s;
}
int main(int argc, char **argv)
{
	volatile unsigned s = 0;
	for (int i = 0; i < atoi(argv[1]); i++)
		s += burn(1000000);
	return argc > 100;
}
END
build() {
	${CC:-cc} -O2 -g -fno-omit-frame-pointer -Wl,--build-id -o "$1" src/busy.c 2>err || fail "cc"
}
build busy
code_of "$spoor" record -F 999 --call-graph dwarf -o x.nettrace -- ./busy 600
expect_code 0 "record"

# The inlined function has its own lines; main calls burn on line 18, not on the next.
with_lines='[.processes[].functions[] | select(.file // "" | endswith("/src/busy.c"))] as $own
	| ($own | any(.name == "mix" and .inlined and (.line == 4 or .line == 5) and .self_samples > 0))
	and ($own | any(.name == "main" and .line == 18 and (.inlined | not) and .total_samples * 2 > $a))
	and ($own | all(.line >= 2 and .line <= 20))'
check_lines() {
	"$spoor" report --lines --json "$1" >json 2>err || fail "report --lines --json, $2"
	json json ".samples as \$a | $with_lines"
}
without_lines() {
	"$spoor" report --lines --json "$1" >json 2>err || fail "report --lines --json, $2"
	json json '[.processes[].functions[] | select((.file // "") | endswith("/src/busy.c"))] == []'
}
check_lines x.nettrace "the program itself"
"$spoor" report --lines x.nettrace >out 2>err || fail "report --lines"
has out 'mix \(inlined\)  busy\.c:[45] +busy'
"$spoor" report --lines --tree x.nettrace >out 2>err || fail "report --lines --tree"
has out 'burn  busy\.c:1[01]'
"$spoor" report --lines --callers burn x.nettrace >out 2>err || fail "report --lines --callers"
has out 'main  busy\.c:18'
"$spoor" flame --lines -o x.folded x.nettrace 2>err || fail "flame --lines"
has x.folded ';main  busy\.c:18;burn  busy\.c:1[01];mix \(inlined\)  busy\.c:[45] '
# Source with the time of each line. Time in the inlined function counts at the line that calls it.
"$spoor" annotate burn x.nettrace >out 2>err || fail "annotate"
has out '^burn: .* CPU s itself'
has out '[1-9][0-9]*\.[0-9] %.* 11  .*s \+= mix\(i \^ s\);'
has out '^ +12  .*return s;'
"$spoor" annotate --json mix x.nettrace >json 2>err || fail "annotate --json"
json json '.functions == ["mix"] and (.lines | length > 0 and all(.line == 4 or .line == 5)) and any(.lines[]; .source | test("x \\^"))
	and ([.lines[].self_ns] | add) == .self_ns'
code_of "$spoor" annotate brun x.nettrace
expect_code 1 "annotate of a function that was not sampled"
has err "did you mean .*'burn'"
# Sources elsewhere, and nowhere.
mkdir -p moved/src && mv src/busy.c moved/src
"$spoor" annotate --json burn x.nettrace >json 2>err || fail "annotate without the source"
json json '.lines | length > 0 and all(.source == null)'
"$spoor" annotate --json --source moved burn x.nettrace >json 2>err || fail "annotate --source"
json json 'any(.lines[]; .line == 11 and (.source | test("s \\+= mix")))'
mv moved/src/busy.c src

# Without the option nothing changes.
"$spoor" report --json x.nettrace >json 2>err || fail "report --json"
json json '[.processes[].functions[] | select(has("line"))] == [] and any(.processes[].functions[]; .name == "burn")'

# A separate debug file, by debug link.
objcopy --only-keep-debug busy busy.debug && strip busy && objcopy --add-gnu-debuglink=busy.debug busy || fail "objcopy"
check_lines x.nettrace "a debug file beside the program"

# Another build of other text at the same path: a wrong line is worse than none.
cp busy.debug right.debug
sed -i '1i /* one line more */' src/busy.c
build other
objcopy --only-keep-debug other busy.debug || fail "objcopy"
without_lines x.nettrace "the debug file of another program"
cp other busy || fail "cp"
without_lines x.nettrace "another program at the path"
has err 'no debug information here for .*(/busy| other images)'

# The symbol cache has it by build id, whatever is at the path.
code_of "$spoor" symbols import right.debug
expect_code 0 "symbols import"
check_lines x.nettrace "the symbol cache"

# A damaged debug file gives no lines, or some, and no crash.
id=$(readelf -n right.debug | sed -n 's/.*Build ID: *//p')
cached=$(find cache -name '*.debug')
[ -n "$id" ] && [ -n "$cached" ] || fail "there is no file in the symbol cache"
size=$(stat -c %s "$cached")
dd if=/dev/urandom of="$cached" bs=1 seek=$((size / 2)) count=64 conv=notrunc 2>/dev/null
without_lines x.nettrace "a damaged file in the symbol cache"
