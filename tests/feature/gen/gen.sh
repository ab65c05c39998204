#!/bin/sh
# What spoor gen makes of manifests compiles with GCC and Clang without a warning and as C++, costs what a hand-written event costs while it is off, and the
# events of .NET's manifest and others are fired with libspoor and read back with their names, numbers and values. Skipped without a compiler and python3.
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
library=$(dirname "$spoor")
fire=$top/tests/gen/fire.py
command -v gcc >/dev/null || skip "no gcc here"
command -v python3 >/dev/null || skip "no python3 here"
[ -e "$library/libspoor.so" ] && ! is_sanitized || skip "the library cannot be linked with a plain program"
strict='-std=c11 -O2 -fPIC -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror'

# compiles FOLDER: each source and header in it. Warnings of Clang do not depend on the optimization.
compiles() {
	for source in "$1"/*.c; do
		gcc $strict -I"$top/include" -c "$source" -o x.o 2>err || fail "gcc does not compile $source"
		! command -v clang >/dev/null || clang $strict -I"$top/include" -fsyntax-only "$source" 2>err || fail "clang does not compile $source"
	done
	command -v g++ >/dev/null || return 0
	for header in "$1"/*.h; do
		g++ -std=c++17 -Wall -Wextra -Werror -I"$top/include" -fsyntax-only -x c++ "$header" 2>err || fail "g++ does not compile $header"
	done
}

# fires NAME MANIFEST: each of its events once, with libspoor, and reads them back.
fires() {
	"$spoor" gen -q "$2" -o "$1.stacks" --only libspoor 2>err || fail "$2 is refused"
	compiles "$1.stacks"
	# Without stack walks: each event once.
	sed -nE 's/.*<provider [^>]*name="([^"]*)".*/nostack::\1::/p' "$2" >"$1.list"
	"$spoor" gen -q "$2" -o "$1" --only libspoor --only json --no-walks "$1.list" 2>err || fail "$2 is refused"
	mkdir "$1.program"
	python3 "$fire" make "$1/events.json" libspoor "$1.program/main.c" "$1.program/expected.json" || fail "no program for $1"
	cp "$1"/*.c "$1.program/"
	for source in "$1.program"/*.c; do
		warnings=$strict
		[ "$source" != "$1.program/main.c" ] || warnings='-std=c11 -Wall -Werror'
		gcc $warnings -O1 -fsanitize=undefined -fno-sanitize-recover=all -I"$top/include" -I"$1" -c "$source" -o "${source%.c}.o" 2>err || fail "$source does not compile"
	done
	gcc -fsanitize=undefined "$1.program"/*.o -L"$library" -lspoor -Wl,-rpath,"$library" -o "$1.program/fire" 2>err || fail "the program of $1 does not build"
	"$1.program/fire" "$1.nettrace" >out 2>err || fail "the program of $1 fails ($?)"
	"$spoor" events -q "$1.nettrace" --json >"$1.json" 2>err || fail "the events of $1 cannot be read"
	python3 "$fire" compare spoor "$1.program/expected.json" "$1.json" >out || fail "events of $1 have other values"
	echo "$1: $(tail -n 1 out)"
}

fires shop "$top/tests/data/manifest/shop.man"
fires eventsource "$top/tests/data/manifest/eventsource.man"
fires names "$top/tests/data/manifest/names.man"
manifests=$top/tests/data/manifest
for name in AdvancedProvider ETWClrProfiler TplEventSource ClrEtwAll; do
	fires $name "$manifests/$name.man"
done
# Lines that end as on Windows.
sed 's/$/\r/' "$manifests/ETWClrProfiler.man" >crlf.man
fires crlf crlf.man
# Names and numbers are those of the answer key.
python3 - ClrEtwAll/events.json "$manifests/ClrEtwAll.events.tsv" >out 2>err <<'END' || fail "other events than the answer key has"
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
"$spoor" gen -q "$manifests/NativeRuntimeEventSource.man" -o native --only libspoor 2>err || fail "the manifest that .NET prints is refused"
compiles native

# A stack walk after each event that wants one, in sessions that enable both.
fires stacks "$top/tests/data/manifest/stacks.man"
cat >walks.c <<'END'
#include <stdio.h>
#include "acmewalks.h"
static struct spoor_session *session_of(const char *path, uint64_t keywords)
{
	struct spoor_want want = { .size = sizeof(want), .name = "Acme-Walks", .keywords = keywords, .level = 4 };
	struct spoor_session_options options = { .size = sizeof(options), .wants = &want, .want_count = 1 };
	struct spoor_file_options file = { .size = sizeof(file), .path = path };
	struct spoor_session *session = NULL;
	return spoor_session_start_file(&options, &file, &session) ? NULL : session;
}
__attribute__((noinline, noclone)) static void walk(unsigned count)
{
	if (count)
		walk(count - 1);
	else
		acmewalks_StepMade(7, 9);
	acmewalks_StepLost();
	__asm__ volatile("");
}
int main(void)
{
	static const uint64_t keywords[] = { 0x40000001, 0x1, 0x40000000 };
	struct spoor_session *sessions[3];
	char path[32];
	if (spoor_start(NULL) || spoor_provider_register(&acmewalks))
		return 1;
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "walks%d.nettrace", i);
		if (!(sessions[i] = session_of(path, keywords[i])))
			return 1;
	}
	walk(3);
	for (int i = 0; i < 3; i++)
		spoor_session_free(sessions[i]);
	spoor_stop();
	printf("%llu\n", (unsigned long long)(uintptr_t)walk);
	return 0;
}
END
gcc -std=c11 -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wall -Werror -I"$top/include" -Istacks.stacks walks.c stacks.stacks/acmewalks.c -L"$library" -lspoor -Wl,-rpath,"$library" -o walks 2>err ||
	fail "the program with stack walks does not build"
./walks >out 2>err || fail "the program with stack walks fails ($?)"
for i in 0 1 2; do
	"$spoor" events -q walks$i.nettrace --json | jq -c 'select(.provider == "Acme-Walks")' >walks$i.json 2>err || fail "walks$i.nettrace cannot be read"
done
python3 - "$(cat out)" <<'END' >out 2>err || fail "other stack walks than the program made"
import json, sys
place = int(sys.argv[1])
read = [[json.loads(line) for line in open("walks%d.json" % i)] for i in range(3)]
assert [e["event"] for e in read[0]] == ["StepMade", "StackWalk"] + ["StepLost", "StackWalk"] * 4, read[0]
assert [e["event"] for e in read[1]] == ["StepMade"] + ["StepLost"] * 4, read[1]
assert read[2] == [], read[2]
for i, walk in enumerate(read[0][1::2]):
    fields = walk["fields"]
    assert fields["ClrInstanceID"] == (9 if i == 0 else 0) and fields["Reserved1"] == fields["Reserved2"] == 0, fields
    stack = [int(str(frame), 0) for frame in fields["Stack"]]
    assert fields["FrameCount"] == len(stack), fields
    # walk() and its callers: four frames for the innermost, then fewer; below them main().
    inside = [place <= frame < place + 256 for frame in stack]
    depth = 4 if i == 0 else 5 - i
    assert all(inside[:depth]) and not any(inside[depth + 1:]) and len(stack) > depth, (i, hex(place), fields)
END

# As many events as there are ids, each with its own template and keywords: their number squared would take minutes of CPU time.
python3 - >many.man <<'END'
keywords = "".join('<keyword name="K%d" mask="0x%x"/>' % (i, 1 << i) for i in range(16))
templates = "".join('<template tid="T%d"><data name="Number" inType="win:UInt32"/></template>' % i for i in range(60000))
events = "".join('<event value="%d" level="win:Informational" symbol="Event%d" template="T%d" keywords="%s"/>' % (i, i, i, " ".join("K%d" % bit for bit in range(16) if i >> bit & 1))
                 for i in range(60000))
print('<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events"><instrumentation><events><provider name="Many" guid="{0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0}" symbol="MANY">'
      "<keywords>%s</keywords><templates>%s</templates><events>%s</events></provider></events></instrumentation></instrumentationManifest>" % (keywords, templates, events))
END
(ulimit -t 20 && exec "$spoor" gen many.man -o many 2>err) || fail "60,000 events ($?)"
has err 'for 60,000 events of 1 provider'

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
