#!/bin/sh
# What spoor gen makes of manifests compiles with GCC and Clang without a warning and as C++, costs what a hand-written event costs while it is off, and the
# events of .NET's manifest and others are fired with libspoor and read back with their names, numbers and values. Skipped without a compiler and python3.
. "$(dirname "$(realpath "$0")")/prelude"
top=$(realpath "$here/../..")
library=$(dirname "$spoor")
fire=$top/tests/gen/fire.py
command -v cc >/dev/null || skip "no C compiler here"
command -v python3 >/dev/null || skip "no python3 here"
[ -e "$library/libspoor.so" ] && ! is_sanitized || skip "the library cannot be linked with a plain program"
strict='-std=c11 -O2 -fPIC -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror'

# compiles FOLDER: each source and header in it.
compiles() {
	for compiler in gcc clang; do
		command -v $compiler >/dev/null || continue
		for source in "$1"/*.c; do
			$compiler $strict -I"$top/include" -c "$source" -o x.o 2>err || fail "$compiler does not compile $source"
		done
	done
	command -v g++ >/dev/null || return 0
	for header in "$1"/*.h; do
		g++ -std=c++17 -Wall -Wextra -Werror -I"$top/include" -fsyntax-only -x c++ "$header" 2>err || fail "g++ does not compile $header"
	done
}

# fires NAME MANIFEST: each of its events once, with libspoor, and reads them back.
fires() {
	"$spoor" gen -q "$2" -o "$1" --only libspoor --only json 2>err || fail "$2 is refused"
	compiles "$1"
	mkdir "$1.program"
	python3 "$fire" make "$1/events.json" libspoor "$1.program/main.c" "$1.program/expected.json" || fail "no program for $1"
	cc -std=c11 -O1 -Wall -Werror -fsanitize=undefined -fno-sanitize-recover=all -I"$top/include" -I"$1" "$1.program/main.c" "$1"/*.c -L"$library" -lspoor \
		-Wl,-rpath,"$library" -o "$1.program/fire" 2>err || fail "the program of $1 does not build"
	"$1.program/fire" "$1.nettrace" >out 2>err || fail "the program of $1 fails ($?)"
	"$spoor" events -q "$1.nettrace" --json >"$1.json" 2>err || fail "the events of $1 cannot be read"
	python3 "$fire" compare spoor "$1.program/expected.json" "$1.json" >out || fail "events of $1 have other values"
	echo "$1: $(tail -n 1 out)"
}

fires shop "$top/tests/data/manifest/shop.man"
fires eventsource "$top/tests/data/manifest/eventsource.man"
fires names "$top/tests/data/manifest/names.man"
corpus=${SPOOR_CORPUS:-$top/../shared/corpus}
if [ -r "$corpus/ClrEtwAll.man" ]; then
	for name in AdvancedProvider ETWClrProfiler UIforETW TplEventSource ClrEtwAll; do
		fires $name "$corpus/$name.man"
	done
	# Names and numbers are those of the answer key.
	python3 - ClrEtwAll/events.json "$corpus/ClrEtwAll.events.tsv" >out 2>err <<'END' || fail "other events than the answer key has"
import json, sys
ours = set()
for provider in json.load(open(sys.argv[1]))["providers"]:
    tasks = {task["name"]: task["value"] for task in provider["tasks"]}
    for e in provider["events"]:
        ours.add((provider["name"], e["id"], e["version"], e["symbol"], e["level"], int(e["keywords"], 16), tasks.get(e.get("task"), 0), e["opcode"], len(e["fields"]),
                  "packed" if e["packed"] else "fields"))
key = set()
for line in open(sys.argv[2]):
    if not line.startswith("#"):
        p = line.rstrip("\n").split("\t")
        key.add((p[0], int(p[1]), int(p[2]), p[3], int(p[4]), int(p[5], 16), int(p[6]), int(p[7]), int(p[8]), p[9]))
for event in sorted(ours ^ key):
    print(event)
sys.exit(ours != key or len(key) != 515)
END
	echo "ClrEtwAll: 515 events are those of the answer key"
	"$spoor" gen -q "$corpus/NativeRuntimeEventSource.man" -o native --only libspoor 2>err || fail "the manifest that .NET prints is refused"
	compiles native
else
	echo "left out: the manifests at $corpus"
fi

# The same manifest gives the same bytes, wherever it is.
cp "$top/tests/data/manifest/shop.man" .
"$spoor" gen -q shop.man -o again --only libspoor --only json || fail "shop.man is refused in another folder"
diff -r shop again >out || fail "the same manifest gives other bytes"

# A disabled event is one load and a branch, as a hand-written one: the same instructions, apart from names.
cat >off.c <<'END'
#include "acmeshop.h"
SPOOR_PROVIDER(hand, "Hand")
SPOOR_EVENT(hand, taken, 1, SPOOR_INFO, 0x1, (u32, Number), (text, Item), (u8, Payment), (u32, Flags), (boolean, class_))
void generated(void);
void written(void);
void generated(void)
{
	acmeshop_OrderTaken_V1(1, "x", 2, 3, true);
}
void written(void)
{
	hand_taken(1, "x", 2, 3, true);
}
END
gcc -std=c11 -O2 -fPIC -I"$top/include" -Ishop -S off.c -o off.s 2>err || fail "off.c does not compile"
# Up to the jump that skips the event.
before_jump() {
	sed -n "/^$1:/,/^\tj/p" off.s | sed 1d | grep -v '^[[:space:]]*\.' | sed -E 's/acmeshop_OrderTaken_V1|hand_taken/NAME/g; s/\.L[0-9]+/LABEL/g'
}
before_jump generated >generated.s
before_jump written >written.s
[ -s written.s ] && diff generated.s written.s >out || fail "a disabled generated event has other instructions than a hand-written one"
exit 0
