#!/bin/sh
# What spoor gen makes of manifests compiles for macOS with zig without a warning, on both of its processors: events of libspoor, and USDT probes with macros as its `dtrace -h` makes them; a program with
# the probes links. It is not run. Skipped without zig (named by ZIG, in PATH, or where scripts/setup all installs it).
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
zig=${ZIG:-zig}
command -v "$zig" >/dev/null || zig=${SPOOR_TEST_PROGRAMS:-$top/build-programs}/zig/zig
command -v "$zig" >/dev/null || skip "zig is not here: scripts/setup all installs it"
# zig compiles its own parts for each kind of macOS. They are kept in the build folder.
export ZIG_GLOBAL_CACHE_DIR="$(dirname "$spoor")/zig-cache" ZIG_LOCAL_CACHE_DIR="$(dirname "$spoor")/zig-cache"
strict='-std=c11 -O1 -Wall -Wextra -Wshadow -Werror'

# macros PROVIDER.d: external functions with the types of the probes, as the macros of macOS call them, and in functions.c those functions.
macros() {
	awk '/provider / { provider = $2 }
		/probe / {
			match($0, /probe [A-Za-z0-9_]+/)
			name = substr($0, RSTART + 6, RLENGTH - 6)
			types = $0
			sub(/^[^(]*\(/, "", types)
			sub(/\);.*/, "", types)
			macro = toupper(provider "_" name)
			gsub(/__/, "_", macro)
			print "extern int " provider "_on_" name "(void);"
			print "extern void " provider "_hit_" name "(" (types == "" ? "void" : types) ");"
			print "#define " macro "_ENABLED() " provider "_on_" name "()"
			print "#define " macro "(" (types == "" ? "" : "...") ") " provider "_hit_" name "(" (types == "" ? "" : "__VA_ARGS__") ")"
			print "int " provider "_on_" name "(void) { return 0; }\nvoid " provider "_hit_" name "() {}" >"functions.c"
		}' "$1"
}

# compiles NAME MANIFEST
compiles() {
	"$spoor" gen -q "$2" -o "$1" --only libspoor --only usdt 2>err || fail "$2 is refused"
	for file in "$1"/*_usdt.d; do
		macros "$file" >"${file%.d}_probes.h"
	done
	for target in aarch64-macos x86_64-macos; do
		for source in "$1"/*.c; do
			"$zig" cc -target $target $strict -I"$top/include" -I"$1" -c "$source" -o "${source%.c}.$target.o" 2>err || fail "zig does not compile $source for $target"
		done
	done
}

compiles names "$top/tests/data/manifest/names.man"
compiles eventsource "$top/tests/data/manifest/eventsource.man"
compiles stacks "$top/tests/data/manifest/stacks.man"
compiles shop "$top/tests/data/manifest/shop.man"
cat >main.c <<'END2'
#include "acmeshop_usdt.h"
int main(void)
{
	acmeshop_usdt_OrderTaken();
	acmeshop_usdt_OrderTaken_V1(7, "tea", 1, 2, acmeshop_usdt_OrderTaken_enabled());
	return 0;
}
END2
for target in aarch64-macos x86_64-macos; do
	"$zig" cc -target $target -std=c11 -I"$top/include" -Ishop main.c functions.c shop/acmeshop_usdt.$target.o -o program.$target 2>err || fail "the program does not link for $target"
	# Mach-O, 64 bits.
	[ "$(od -An -tx4 -N4 program.$target | tr -d ' ')" = feedfacf ] || fail "it is no Mach-O file"
done
echo "objects and programs for two kinds of macOS"
exit 0
