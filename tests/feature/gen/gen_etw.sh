#!/bin/sh
# The code for Windows that spoor gen makes of manifests: with a stand-in for ETW it writes each event of .NET and others, in ETW's layout byte for byte, to the sessions that enable it. It
# compiles and links with mingw without a warning, and its descriptors are those of .NET's answer key. It is not run on Windows. The parts need gcc and python3, and mingw (gcc-mingw-w64-x86-64).
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
compiler=x86_64-w64-mingw32-gcc
manifests=$top/tests/data/manifest

# runs NAME MANIFEST: each event once without a session and once with one.
runs() {
	"$spoor" gen -q "$2" -o "$1.run" --only etw --only json 2>err || fail "$2 is refused"
	python3 "$top/tests/gen/fire.py" make "$1.run/events.json" etw main.c expected.json || fail "no program for $1"
	gcc -std=c11 -O1 -Wall -Wextra -Werror -fsanitize=undefined -fno-sanitize-recover=all -I"$top/include" -I"$top/tests/gen/etw" -I"$1.run" main.c "$1.run"/*.c \
		"$top/tests/gen/etw/etw.c" -o fire 2>err || fail "the program of $1 does not build"
	./fire >written || fail "the program of $1 fails ($?)"
	[ "$(head -n 1 written)" = "$(jq length expected.json) not enabled" ] || fail "events of $1 without a session: $(head -n 1 written)"
	python3 "$top/tests/gen/fire.py" compare etw expected.json written >out || fail "events of $1 have other bytes: $(head -n 3 out)"
	echo "$1: $(tail -n 1 out)"
}
if command -v gcc >/dev/null && command -v python3 >/dev/null; then
	for name in shop eventsource names; do
		runs $name "$top/tests/data/manifest/$name.man"
	done
	for name in AdvancedProvider ClrEtwAll; do
		runs $name "$manifests/$name.man"
	done
	# A session's level and keywords, and the program's function.
	cat >main.c <<-'END'
		#include <stdio.h>
		#include "acmeshop_etw.h"
		#include "etw.h"
		static void changed(bool enabled, uint8_t level, uint64_t keywords)
		{
			printf("changed %d %u 0x%llx %d\n", enabled, level, (unsigned long long)keywords, acmeshop_etw_OrderTaken_enabled());
		}
		int main(void)
		{
			acmeshop_etw_changed = changed;
			if (acmeshop_etw_register())
				return 1;
			etw_session(1, 4, 0x1);
			printf("%d %d\n", acmeshop_etw_OrderTaken_enabled(), acmeshop_etw_OrderTaken_V1_enabled());
			etw_session(1, 1, 0x1);
			printf("%d %d\n", acmeshop_etw_OrderTaken_enabled(), acmeshop_etw_OrderTaken_V1_enabled());
			etw_session(0, 0, 0);
			acmeshop_etw_unregister();
			etw_session(1, 5, 0x1);
			return acmeshop_etw_OrderTaken_enabled();
		}
	END
	gcc -std=c11 -Wall -Werror -I"$top/include" -I"$top/tests/gen/etw" -Ishop.run main.c shop.run/acmeshop_etw.c "$top/tests/gen/etw/etw.c" -o fire 2>err || fail "main.c does not build"
	./fire >out || fail "enabled after the end, or not registered ($?)"
	printf '%s\n' 'changed 1 4 0x1 1' '1 1' 'changed 1 1 0x1 0' '0 0' 'changed 0 0 0x0 0' >wanted
	diff wanted out || fail "other sessions"

	# Counts and lengths that no payload can have: the count that is written is that of the written elements, so a reader finds the next field.
	cat >amounts.man <<-'END'
		<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events"><instrumentation><events>
		<provider name="Amounts" guid="{0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0}" symbol="AMOUNTS">
		<templates><template tid="Text"><data name="n" inType="win:UInt32"/><data name="v" inType="win:UnicodeString" length="n"/><data name="end" inType="win:UInt32"/></template>
		<template tid="List"><data name="n" inType="win:Int32"/><data name="v" inType="win:UInt16" count="n"/><data name="end" inType="win:UInt32"/></template></templates>
		<events><event value="1" level="win:Informational" symbol="Counted" template="Text"/><event value="2" level="win:Informational" symbol="Listed" template="List"/></events>
		</provider></events></instrumentation></instrumentationManifest>
	END
	"$spoor" gen -q amounts.man -o amounts.run --only etw 2>err || fail "amounts.man is refused"
	cat >main.c <<-'END'
		#include <stdlib.h>
		#include <string.h>
		#include "amounts_etw.h"
		#include "etw.h"
		int main(void)
		{
			char *const text = malloc(200001);
			if (!text || amounts_etw_register())
				return 1;
			memset(text, 'x', 200000);
			text[200000] = 0;
			etw_session(1, 5, ~0ull);
			amounts_etw_Counted(200000, text, 0x01020304);
			amounts_etw_Counted(0xffffffff, "ab", 0x01020304);
			amounts_etw_Counted(2, "ab", 0x01020304);
			amounts_etw_Listed(-1, (const uint16_t[]){ 1, 2 }, 0x01020304);
			amounts_etw_Listed(2, (const uint16_t[]){ 1, 2 }, 0x01020304);
			free(text);
			return 0;
		}
	END
	gcc -std=c11 -O1 -Wall -Werror -fsanitize=undefined -fno-sanitize-recover=all -I"$top/include" -I"$top/tests/gen/etw" -Iamounts.run main.c amounts.run/amounts_etw.c "$top/tests/gen/etw/etw.c" -o fire 2>err || fail "the program of amounts does not build"
	./fire >written || fail "the program of amounts fails ($?)"
	python3 - written >out 2>err <<-'END' || fail "other counts than elements are in the payload"
		import re, struct, sys
		sizes = []
		for line in open(sys.argv[1]):
		    data = bytes.fromhex(max(re.findall("[0-9a-f]+", line.split()[-1]), key=len))
		    count = struct.unpack("<i", data[:4])[0]
		    assert len(data) == 4 + 2 * count + 4 and data[-4:] == bytes([4, 3, 2, 1]), (count, len(data))
		    sizes.append(count)
		assert sizes == [65535, 65535, 2, 0, 2], sizes
	END
fi
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
# The events of libspoor, for its library without sessions.
compiles_libspoor() {
	"$spoor" gen -q "$2" -o "$1.libspoor" --only libspoor 2>err || fail "$2 is refused"
	for source in "$1.libspoor"/*.c; do
		$compiler -std=c11 -O2 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror -I"$top/include" -c "$source" -o "${source%.c}.o" 2>err ||
			fail "$source does not compile"
	done
}
compiles_libspoor names "$top/tests/data/manifest/names.man"
compiles_libspoor shop "$top/tests/data/manifest/shop.man"
compiles_libspoor stacks "$top/tests/data/manifest/stacks.man"
"$top/scripts/libspoor-direct" direct >err 2>&1 || fail "libspoor-direct does not compile"
cat >main.c <<'END'
#include <spoor/logger.h>
#include "acmewalks.h"
int main(void)
{
	if (spoor_start(NULL) || spoor_provider_register(&acmewalks) || spoor_logger_start(SPOOR_LOGGER_ETW))
		return 1;
	acmewalks_StepMade(7, 9);
	spoor_stop();
	return 0;
}
END
$compiler -std=c11 -O2 -Wall -Werror -Idirect/include -Istacks.libspoor main.c stacks.libspoor/*.o direct/libspoor.a -ladvapi32 -lpthread -static -o main.exe 2>err || fail "a program of libspoor does not link"
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
compiles_libspoor ClrEtwAll "$manifests/ClrEtwAll.man"
compiles AdvancedProvider "$manifests/AdvancedProvider.man"
compiles ClrEtwAll "$manifests/ClrEtwAll.man"
# Id, version, level, opcode, task, keywords.
sed -nE 's/^\t\{ ([0-9]+), ([0-9]+), 0, ([0-9]+), ([0-9]+), ([0-9]+), UINT64_C\((0x[0-9a-f]+)\) \},$/\1 \2 \3 \4 \5 \6/p' ClrEtwAll/*_etw.c | sort >ours
grep -v '^#' "$manifests/ClrEtwAll.events.tsv" | awk -F'\t' '{ print $2, $3, $5, $8, $7, $6 }' | sort >key
diff key ours >out || fail "other descriptors than the answer key has"
[ "$(wc -l <ours)" = 515 ] || fail "$(wc -l <ours) descriptors, not 515"
echo "515 descriptors are those of the answer key"
exit 0
