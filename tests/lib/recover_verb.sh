#!/bin/sh
# recover_verb.sh BUILD-FOLDER CC: spoor recover reads the last events of a killed program from its file, and of a hanging program from its memory.
set -eu
build=$(realpath "$1")
top=$(realpath "$(dirname "$0")/../..")
[ -x "$build/spoor" ] || {
	echo "skipped: this build has no spoor"
	exit 77
}
folder=$(mktemp -d)
victim=''
trap '[ -z "$victim" ] || kill -9 $victim 2>/dev/null; rm -rf "$folder"' EXIT
fail() {
	echo "FAILED: $*"
	cat "$folder"/out "$folder"/err 2>/dev/null
	exit 1
}
# The tutorial's own program, which kills itself.
sed -n '/^```c crash\.c$/,/^```$/p' "$top/docs/libspoor/tutorial.md" | sed '1d;$d' >"$folder/crash.c"
sed 's/raise(SIGKILL)/pause()/; s/, .recover_path = "shop.rings"//; s/#include <signal.h>/#include <unistd.h>/' "$folder/crash.c" >"$folder/hang.c"
for name in crash hang; do
	cc "$folder/$name.c" -I"$top/include" -L"$build" -lspoor -Wl,-rpath,"$build" -o "$folder/$name"
done
cd "$folder"
./crash 2>/dev/null && fail "it should have been killed"
"$build/spoor" recover shop.rings -o crash.nettrace >out 2>err || fail "recover"
grep -qE '^crash.nettrace +50 events of process [0-9]+ \(\./crash\), its last ' err || fail "what it says"
"$build/spoor" report crash.nettrace >out 2>err || fail "report"
grep -qE '^ +50  Shop/order$' out || fail "the events"
[ "$(stat -c %a crash.nettrace)" = 600 ] || fail "the file is open to others"

./hang &
victim=$!
for _ in $(seq 100); do
	"$build/spoor" recover -p $victim -o hang.nettrace >out 2>err && break
	sleep 0.05
done
grep -qE '^hang.nettrace +50 events of process '$victim' ' err || fail "a program that hangs"
"$build/spoor" recover -p $$ >out 2>err && fail "a shell has no rings"
grep -q 'has no rings to be recovered' err || fail "a shell"
