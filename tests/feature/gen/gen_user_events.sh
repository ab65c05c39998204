#!/bin/sh
# The user_events that spoor gen makes of manifests compile with GCC and Clang without a warning, register one tracepoint for each level and keywords, and are written as EventHeader
# with the names, types and values that were fired, all 515 of .NET among them: with a stand-in for the kernel's interface. Skipped without a compiler or python3.
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
fire=$top/tests/gen/fire.py
stand_in=$(dirname "$spoor")/tests/lib/libuser_events_stand_in.so
command -v gcc >/dev/null && command -v python3 >/dev/null || skip "no gcc or no python3 here"
! is_sanitized || skip "a preloaded stand-in is not for sanitizers"
strict='-std=c11 -O1 -fsanitize=undefined -fno-sanitize-recover=all -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror'
export USER_EVENTS_FOLDER="$scratch"

# fires NAME MANIFEST: each of its events once, and reads them back.
fires() {
	"$spoor" gen -q "$2" -o "$1" --only user-events --only json 2>err || fail "$2 is refused"
	for source in "$1"/*.c; do
		gcc $strict -I"$top/include" -c "$source" -o "${source%.c}.o" 2>err || fail "gcc does not compile $source"
		! command -v clang >/dev/null || clang $strict -I"$top/include" -fsyntax-only "$source" 2>err || fail "clang does not compile $source"
	done
	! command -v g++ >/dev/null || for header in "$1"/*.h; do
		g++ -std=c++17 -Wall -Wextra -Werror -I"$top/include" -fsyntax-only -x c++ "$header" 2>err || fail "g++ does not compile $header"
	done
	mkdir "$1.program"
	python3 "$fire" make "$1/events.json" user_events "$1.program/main.c" "$1.program/expected.json" || fail "no program for $1"
	gcc -std=c11 -O1 -Wall -Werror -fsanitize=undefined -fno-sanitize-recover=all -I"$top/include" -I"$1" "$1.program/main.c" "$1"/*.o -o "$1.program/fire" 2>err ||
		fail "the program of $1 does not build"
	# Registered and not enabled: nothing is written.
	rm -f enabled registered
	: >written
	code_of env LD_PRELOAD="$stand_in" "$1.program/fire"
	[ "$(cat out)" = "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))))' "$1.program/expected.json") not enabled" ] && [ ! -s written ] ||
		fail "events of $1 that nothing enabled: $(cat out err)"
	[ "$(grep -c '^+' registered)" = "$(grep -c '^-' registered)" ] || fail "tracepoints of $1 are left"
	tracepoints=$(jq '[.providers[] | .name as $p | .events[] | [$p, ([.level, 1] | max), .keywords]] | unique | length' "$1/events.json")
	[ "$(grep -c '^+' registered)" = "$tracepoints" ] || fail "$(grep -c '^+' registered) tracepoints of $1, not $tracepoints"
	echo '*' >enabled
	LD_PRELOAD="$stand_in" "$1.program/fire" >out 2>err || fail "the program of $1 fails ($?): $(cat out err)"
	python3 "$top/tests/lib/event_header.py" written >"$1.decoded" 2>err || fail "an event of $1 is malformed: $(cut -c 1-300 err)"
	python3 "$fire" compare event-header "$1.program/expected.json" "$1.decoded" >out || fail "events of $1 have other values: $(head -n 3 out)"
	echo "$1: $(tail -n 1 out), $tracepoints tracepoints"
}

fires shop "$top/tests/data/manifest/shop.man"
fires eventsource "$top/tests/data/manifest/eventsource.man"
fires names "$top/tests/data/manifest/names.man"
manifests=$top/tests/data/manifest
for name in AdvancedProvider ETWClrProfiler TplEventSource ClrEtwAll; do
	fires $name "$manifests/$name.man"
done
[ "$(value_lines ClrEtwAll.decoded length)" = 515 ] || fail "$(value_lines ClrEtwAll.decoded length) events of .NET, not 515"

# An activity of the thread.
cat >main.c <<'END2'
#include "acmeshop_user_events.h"
int main(void)
{
	static const struct spoor_guid id = { { 0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff } };

	if (acmeshop_user_events_register() || acmeshop_user_events_register())
		return 1;
	acmeshop_user_events_activity = &id;
	acmeshop_user_events_OrderTaken();
	acmeshop_user_events_activity = NULL;
	acmeshop_user_events_OrderTaken();
	acmeshop_user_events_unregister();
	acmeshop_user_events_OrderTaken();
	return acmeshop_user_events_OrderTaken_enabled();
}
END2
gcc -Wall -Werror -I"$top/include" -Ishop main.c shop/acmeshop_user_events.c -o fire 2>err || fail "the program does not build"
: >written
LD_PRELOAD="$stand_in" ./fire || fail "the program with an activity ($?)"
python3 "$top/tests/lib/event_header.py" written >decoded 2>err || fail "an event is malformed"
jq -es 'map(.activity) == ["00112233-4455-6677-8899-aabbccddeeff", null]' decoded >/dev/null || fail "other activities: $(cat decoded)"
exit 0
