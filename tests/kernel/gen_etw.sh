#!/bin/sh
# The code for Windows that spoor gen makes of manifests compiles and links with mingw without a warning, and its descriptors are those of .NET's answer key. It is not run
# here. Skipped without mingw (gcc-mingw-w64-x86-64).
. "$(dirname "$(realpath "$0")")/prelude"
top=$(realpath "$here/../..")
compiler=x86_64-w64-mingw32-gcc
command -v $compiler >/dev/null || skip "mingw is not installed (gcc-mingw-w64-x86-64)"

# compiles NAME MANIFEST
compiles() {
	"$spoor" gen -q "$2" -o "$1" --only etw --only json 2>err || fail "$2 is refused"
	for source in "$1"/*_etw.c; do
		$compiler -std=c11 -O2 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror -I"$top/include" -c "$source" -o "${source%.c}.o" 2>err ||
			fail "$source does not compile"
	done
	! command -v x86_64-w64-mingw32-g++ >/dev/null || for header in "$1"/*_etw.h; do
		x86_64-w64-mingw32-g++ -std=c++17 -Wall -Wextra -Werror -I"$top/include" -fsyntax-only -x c++ "$header" 2>err || fail "$header is no C++"
	done
}
compiles shop "$top/tests/data/manifest/shop.man"
compiles eventsource "$top/tests/data/manifest/eventsource.man"
compiles names "$top/tests/data/manifest/names.man"
cat >main.c <<'END'
#include "acmeshop_etw.h"
int main(void)
{
	if (acmeshop_etw_register())
		return 1;
	acmeshop_etw_OrderTaken();
	acmeshop_etw_OrderTaken_V1(7, "tea", 1, 2, acmeshop_etw_OrderTaken_enabled());
	acmeshop_etw_unregister();
	return 0;
}
END
$compiler -std=c11 -O2 -Wall -Werror -I"$top/include" -Ishop main.c shop/acmeshop_etw.o -ladvapi32 -o main.exe 2>err || fail "a program does not link"
x86_64-w64-mingw32-objdump -p main.exe >imports
for name in EventRegister EventWrite EventEnabled EventUnregister; do
	has imports "[ 	]$name\$"
done
corpus=${SPOOR_CORPUS:-$top/../shared/corpus}
[ -r "$corpus/ClrEtwAll.man" ] || {
	echo "left out: the manifests at $corpus"
	exit 0
}
compiles AdvancedProvider "$corpus/AdvancedProvider.man"
compiles ClrEtwAll "$corpus/ClrEtwAll.man"
# Id, version, level, opcode, task, keywords.
sed -nE 's/^\t\{ ([0-9]+), ([0-9]+), 0, ([0-9]+), ([0-9]+), ([0-9]+), UINT64_C\((0x[0-9a-f]+)\) \},$/\1 \2 \3 \4 \5 \6/p' ClrEtwAll/*_etw.c | sort >ours
grep -v '^#' "$corpus/ClrEtwAll.events.tsv" | awk -F'\t' '{ print $2, $3, $5, $8, $7, $6 }' | sort >key
diff key ours >out || fail "other descriptors than the answer key has"
[ "$(wc -l <ours)" = 515 ] || fail "$(wc -l <ours) descriptors, not 515"
echo "515 descriptors are those of the answer key"
exit 0
