#!/bin/sh
# Each example of the manual pages runs: in a folder with small recordings, on a web API under load, or on a native program if there is no .NET SDK.
# Examples that cannot run here are printed with the reason. Rules of single examples: tests/man_examples.awk. The test changes commands as follows:
#
#   4711                          becomes the id of the target; its name is Shop
#   10s, 30s, 10m; sleep 10       become one second
#   /tmp/, /var/tmp/              become the test's folder
#   sudo                          is left out for root; others skip the example
#   Shop.dll                      becomes the built web API
#
# The folder has app.nettrace, shop.nettrace, gc.nettrace, shop.rings, shop.man and a Makefile before the first example of a page runs.
own_machine=yes
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
awk -f "$top/tests/man_examples.awk" "$top"/docs/man/*.[17] >examples
for page in "$top"/docs/man/*.[17]; do
	name=$(basename "${page%.*}")
	grep -q "^$name	" examples || fail "no example found in $name"
done

export ASPNETCORE_ENVIRONMENT=Production DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1
mkdir bin files pages
ln -s "$spoor" bin/spoor
PATH=$scratch/bin:$PATH

# A web API at work, or a native program that computes.
load=$(dirname "$spoor")/examples/load
dotnet=
if [ ! -x "$load" ]; then
	no_dotnet="the examples are not built"
elif dll=$("$top/scripts/test-programs" webapi 2>err); then
	start pid dotnet "$dll" "$scratch/port" >shop.out 2>&1
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		! until_true test -s port || break
	done
	[ -s port ] || fail "the web API does not start: $(head -n 3 shop.out)"
	start clients "$load" -p 20000 "$(cat port)" 600 /cpu=1 /alloc=1 /throw=1 >/dev/null
	dotnet=1
elif [ $? = 77 ]; then
	no_dotnet=$dll
else
	fail "the web API could not be built"
fi
if [ -z "$dotnet" ]; then
	cp "$target" bin/Shop
	start pid bin/Shop spin 600000
fi

# The recordings that pages name. Repeated with a longer duration until one has samples of the target in its second second, and for .NET events of collections.
enough() {
	"$spoor" report -q files/app.nettrace -p "$pid" --from 1s --to 2s --json >app.json 2>/dev/null
	[ "$(value app.json .selected_samples)" -gt 0 ] || return 1
	[ -z "$dotnet" ] || {
		"$spoor" report -q files/app.nettrace --callers Burn >/dev/null 2>&1 &&
			"$spoor" events -q files/app.nettrace -p "$pid" --event 'GC/*' --limit 1 >/dev/null 2>&1
	}
}
for seconds in 3 6 12 24; do
	code_of "$spoor" record -q -p "$pid" -F 499 --duration ${seconds}s -o files/app.nettrace
	expect_code 0 "a recording for the examples"
	! enough || break
done
enough || fail "nothing of the target was recorded"
rm -f files/*.old
cp files/app.nettrace files/shop.nettrace
cp "$top/tests/data/nettrace/gc-dynamic.nettrace" files/gc.nettrace
cp "$top/tests/data/manifest/shop.man" files/shop.man
printf 'all:\n\tsleep 0.2\n' >files/Makefile

# A program with libspoor that crashed and one that hangs: those of docs/libspoor/tutorial.md. A library with a sanitizer does not link with a plain program.
rings=
library=$(dirname "$spoor")
if [ -e "$library/libspoor.so" ] && ! is_sanitized && command -v cc >/dev/null; then
	sed -n '/^```c crash\.c$/,/^```$/p' "$top/docs/libspoor/tutorial.md" | sed '1d;$d' >crash.c
	sed 's/raise(SIGKILL)/pause()/; s/, .recover_path = "shop.rings"//; s/#include <signal.h>/#include <unistd.h>/' crash.c >hang.c
	for name in crash hang; do
		cc $name.c -I"$top/include" -L"$library" -lspoor -Wl,-rpath,"$library" -o $name 2>err || fail "$name.c of the tutorial does not build"
	done
	(cd files && sh -c '../crash; :' 2>/dev/null)
	[ -s files/shop.rings ] || fail "a program that crashed left no rings"
	start hanging ./hang
	until_true "$spoor" recover -q -p "$hanging" -o hang.nettrace || fail "a program that hangs has no rings"
	rings=1
fi

passed=0 skipped=0 programs=0
left_out() {
	echo "skipped: $1: $2 ($3)"
	skipped=$((skipped + 1))
}

# missing COMMAND: the first program of the pipeline that is not installed.
missing() {
	echo "$1" | sed "s/'[^']*'//g" | tr '|' '\n' | while read -r word _; do
		command -v "$word" >/dev/null || echo "$word"
	done | head -n 1
}

# Waits for a line on standard output, an event or the web API's port, which comes after the session was opened, then sends SIGINT. Before the session is open
# the command would end with "nothing was traced".
interrupted() {
	: >out
	: >err
	sh -c "exec $1" >out 2>err </dev/null &
	running=$!
	started="$started $running"
	for i in $(seq 2400); do
		[ ! -s out ] || break
		kill -0 $running 2>/dev/null || break
		sleep 0.05
	done
	kill -INT $running 2>/dev/null
	code=0
	wait $running || code=$?
	[ $code != 130 ] || code=0
}

run() {
	page=$1 rule=$2 shown=$3
	command=$shown id=$pid
	case $rule in
	'not run, '*) left_out "$page" "$shown" "${rule#not run, }" && return ;;
	dotnet*) [ -n "$dotnet" ] || { left_out "$page" "$shown" "$no_dotnet" && return; } ;;
	esac
	case $page in
	spoor-recover)
		[ -n "$rings" ] || { left_out "$page" "$shown" "no program with libspoor can be built for this build" && return; }
		id=$hanging
		;;
	esac
	case $command in
	'sudo '*)
		is_root || { left_out "$page" "$shown" "it needs root" && return; }
		command=${command#sudo }
		;;
	esac
	word=$(missing "$command")
	[ -z "$word" ] || { left_out "$page" "$shown" "$word is not installed" && return; }
	command=$(echo "$command" | sed -E "s/\b4711\b/$id/g; s/\b(5|10|30)s\b/1s/g; s/\b10m\b/1s/g; s/\bsleep 10\b/sleep 1/; s/--count 12/--count 2/;
		s|(/var)?/tmp/|$scratch/|g; s|Shop\.dll|$dll|")
	# A busy runtime may leave the request for a collection unanswered, or lose blocks of the heap: as in managed_heap.sh, several attempts are made.
	attempts=1
	[ "$page" != spoor-heap ] || attempts=5
	# perf may end with 255 and without a message on a busy machine.
	case $command in perf*) attempts=5 ;; esac
	for attempt in $(seq $attempts); do
		case $rule in
		*ctrl-c) interrupted "$command" ;;
		*) timeout 300 sh -c "$command" >out 2>err </dev/null && code=0 || code=$? ;;
		esac
		[ $code != 0 ] || break
	done
	expect_code 0 "the example of $page: $shown (here: $command)"
	[ -s out ] || [ -s err ] || [ "$page" != spoor-report ] || fail "the example of $page shows nothing: $shown"
	passed=$((passed + 1))
}

last=
tab=$(printf '\t')
while IFS=$tab read -r page rule command <&3; do
	if [ "$page" != "$last" ]; then
		mkdir "$scratch/pages/$page" && cp "$scratch"/files/* "$scratch/pages/$page/"
		cd "$scratch/pages/$page" || exit 99
		last=$page
	fi
	run "$page" "$rule" "$command"
done 3<"$scratch/examples"

# The pages of the library show C programs.
for page in "$top"/docs/man/*.7; do
	awk '/^\.Bd/ { block = 1; next } /^\.Ed/ { block = 0 } block { gsub(/\\e/, "\\"); gsub(/\\&/, ""); gsub(/\\-/, "-"); print }' "$page" >"$scratch/page.c"
	if [ -s "$scratch/page.c" ] && command -v cc >/dev/null; then
		cc -std=c11 -Wall -Werror -I"$top/include" -c "$scratch/page.c" -o "$scratch/page.o" 2>"$scratch/err" || {
			cat "$scratch/err"
			fail "the program of $(basename "$page") does not compile"
		}
		programs=$((programs + 1))
	fi
done
echo "$passed examples ran, $skipped were skipped, $programs programs compiled"
[ $((passed + skipped)) = "$(wc -l <"$scratch/examples")" ] || fail "$passed examples ran and $skipped were skipped, of $(wc -l <"$scratch/examples")"
[ $passed -ge 10 ] || fail "only $passed examples could run"
