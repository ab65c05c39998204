#!/bin/sh
# The tracepoints that spoor gen makes of manifests, all 515 of .NET among them, are recorded by LTTng and read back by babeltrace2 with their names, fields, values and log
# levels; packed ones have the bytes of ETW's layout. With LTTng-UST 2.13, which is installed, and 2.12 (Debian 11's, fetched into the build folder). Skipped without LTTng (liblttng-ust-dev, lttng-tools), babeltrace2, a compiler or python3.
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
fire=$top/tests/gen/fire.py
for tool in lttng lttng-sessiond babeltrace2 python3 gcc; do
	command -v $tool >/dev/null || skip "$tool is not in PATH"
done
echo '#include <lttng/tracepoint.h>' >have.c
gcc -fsyntax-only have.c 2>/dev/null || skip "the headers of LTTng-UST are not installed (liblttng-ust-dev)"
mkdir home
# A separate session daemon: root's daemon serves the whole machine, so root runs it as the user 65534 (nobody).
as=''
if [ "$(id -u)" = 0 ]; then
	command -v setpriv >/dev/null || skip "setpriv is not in PATH: root's session daemon would be the machine's"
	as='setpriv --reuid=65534 --regid=65534 --clear-groups'
	chown 65534:65534 home
	chmod 755 .
fi
export HOME="$scratch/home" LTTNG_HOME="$scratch/home" TMPDIR="$scratch/home"
start daemon $as lttng-sessiond --no-kernel >daemon.log 2>&1
until_true $as lttng --no-sessiond list >/dev/null 2>&1 || fail "the session daemon does not answer: $(cat daemon.log)"

# lttng_of WORD...
lttng_of() {
	$as lttng --no-sessiond "$@" >>lttng.log 2>&1 || fail "lttng $*: $(tail -n 3 lttng.log)"
}

# The installed version, until the end.
headers='' libraries='-llttng-ust -ldl' run=''

# traces NAME MANIFEST: fires each of its events once into a session that has all of them, and reads them back.
traces() {
	"$spoor" gen -q "$2" -o "$1" 2>err || fail "$2 is refused"
	mkdir "$1.program"
	python3 "$fire" make "$1/events.json" lttng "$1.program/main.c" "$1.program/expected.json" || fail "no program for $1"
	for source in "$1"/*_lttng.c; do
		gcc -std=gnu11 -Wall -Wextra -Werror $headers -I"$top/include" -I"$1" -c "$source" -o "$1.program/$(basename "$source" .c).o" 2>err || fail "$source does not compile"
		! command -v clang >/dev/null || [ "${1%%_*}" = ClrEtwAll ] ||
			clang -std=gnu11 -Wall -Wextra -Werror $headers -I"$top/include" -I"$1" -fsyntax-only "$source" 2>err || fail "clang does not compile $source"
	done
	gcc -std=gnu11 -Wall -Werror $headers -fsanitize=undefined -fno-sanitize-recover=all -I"$top/include" -I"$1" "$1.program/main.c" "$1.program"/*.o $libraries \
		-o "$1.program/fire" 2>err || fail "the program of $1 does not build"
	# With no session: nothing is enabled, and nothing happens.
	code_of $as $run "$1.program/fire"
	[ "$(cat out)" = "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))))' "$1.program/expected.json") not enabled" ] || fail "events of $1 without a session"
	lttng_of create "$1" --output="$scratch/home/$1"
	for provider in $(jq -r '.providers[] | select(.events != []) | .shortName' "$1/events.json"); do
		lttng_of enable-event --userspace "$provider:*" --session "$1"
	done
	lttng_of start "$1"
	LTTNG_UST_REGISTER_TIMEOUT=-1 $as $run "$1.program/fire" >out 2>err || fail "the program of $1: $(cat out)"
	lttng_of stop "$1"
	lttng_of destroy "$1"
	babeltrace2 "$scratch/home/$1" >"$1.text" 2>err || fail "babeltrace2 does not read the trace of $1"
	python3 "$fire" compare babeltrace "$1.program/expected.json" "$1.text" >out || fail "tracepoints of $1 have other values"
	echo "$1: $(tail -n 1 out)"
}

traces shop "$top/tests/data/manifest/shop.man"
traces eventsource "$top/tests/data/manifest/eventsource.man"
traces names "$top/tests/data/manifest/names.man"
grep -q 'loglevel = 6;' "$scratch/home/shop/ust/uid"/*/64-bit/metadata || fail "no event of LTTng's level INFO"
manifests=$top/tests/data/manifest
traces AdvancedProvider "$manifests/AdvancedProvider.man"
traces ClrEtwAll "$manifests/ClrEtwAll.man"
# Names and form are those of the answer key, which has them from the library that .NET ships.
grep -v '^#' "$manifests/ClrEtwAll.events.tsv" | cut -f 1,4,10 | sed -E 's/^Microsoft-(Windows-)?//; s/\t/:/' | sort >key
sed -nE 's/^\[[^]]*\] \([^)]*\) [^ ]+ ([A-Za-z]+:[A-Za-z0-9_]+): .*__data__ = .*/\1\tpacked/p; t; s/^\[[^]]*\] \([^)]*\) [^ ]+ ([A-Za-z]+:[A-Za-z0-9_]+): .*/\1\tfields/p' ClrEtwAll.text |
	sort >ours
diff key ours >out || fail "other tracepoints than the answer key has"
[ "$(wc -l <ours)" = 515 ] || fail "$(wc -l <ours) tracepoints, not 515"
# Spoor reads the trace as the runtime's events: provider, id, version, level, keywords, and the fields of the manifest.
"$spoor" events --json "$scratch/home/ClrEtwAll" >ClrEtwAll.spoor 2>err || fail "spoor does not read the trace"
python3 "$fire" compare spoor ClrEtwAll.program/expected.json ClrEtwAll.spoor >out || fail "spoor reads other values"
echo "ClrEtwAll: 515 tracepoints have the names and forms of the answer key"

# The same code with the headers and the library of 2.12.
old=${SPOOR_LTTNG_UST0:-$(dirname "$spoor")/gc-tests/lttng-ust0}
for what in libraries headers; do
	why=$(sh "$top/tests/gc/fetch_lttng" "$old" $what) || {
		echo "left out: LTTng-UST 2.12: $why"
		exit 0
	}
done
mkdir old
cp "$old"/*.so.* old/
headers="-isystem $old/include" run="env LD_LIBRARY_PATH=$scratch/old"
libraries="$old/liblttng-ust.so.0 $old/liblttng-ust-tracepoint.so.0 -Wl,-rpath-link,$old -ldl"
traces shop_old "$top/tests/data/manifest/shop.man"
readelf -d shop_old.program/fire >needed
has needed 'liblttng-ust\.so\.0'
traces names_old "$top/tests/data/manifest/names.man"
traces ClrEtwAll_old "$manifests/ClrEtwAll.man"
exit 0
