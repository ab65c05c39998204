#!/bin/sh
# linkers.sh BUILD-FOLDER: a program's events are there whichever linker drops its unused sections: bfd (also with -z start-stop-gc), gold, lld; with GCC and
# Clang, with and without LTO, with the static and the shared library, in the program and in a shared object of its own. What is missing is named.
set -eu
build=$(realpath "$1")
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >events.h <<'END'
#include <spoor/spoor.h>
SPOOR_PROVIDER(shop, "Shop")
SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, id))
SPOOR_EVENT(shop, bill, 2, SPOOR_INFO, 0x1, (u32, id))
END
# The events of main() and of other(); the constructor's object is alone in its shared object, in the programs without one it is linked in as well.
cat >main.c <<'END'
#include <stdio.h>
#include <string.h>
#include <spoor/activity.h>
#include "events.h"
void other(void);
static int seen[4];
static void listen(const struct spoor_event_view *event, void *context)
{
	(void)context;
	if (!strcmp(event->info->provider, "Shop"))
		seen[event->info->id]++;
	else if (!strcmp(event->info->provider, "Plugin") || !strcmp(event->info->provider, "Spoor-Activity"))
		seen[event->info->provider[0] == 'P' ? 3 : 0]++;
}
int main(void)
{
	struct spoor_options start = { .size = sizeof(start), .flags = SPOOR_START_NO_SERVER };
	struct spoor_want wants[] = { { .size = sizeof(wants[0]), .name = "Shop", .keywords = UINT64_MAX, .level = 5 },
		{ .size = sizeof(wants[0]), .name = "Plugin", .keywords = UINT64_MAX, .level = 5 },
		{ .size = sizeof(wants[0]), .name = "Spoor-Activity", .keywords = UINT64_MAX, .level = 5 } };
	struct spoor_session_options options = { .size = sizeof(options), .wants = wants, .want_count = 3 };
	struct spoor_activity activity;
	struct spoor_session *session;
	int error = spoor_start(&start);
	if (!error)
		error = spoor_provider_register(&shop);
	if (!error)
		error = spoor_session_start_callback(&options, listen, NULL, &session);
	if (error) {
		printf("error %d\n", error);
		return 1;
	}
	shop_order(7);
	other();
	(void)spoor_activity_start(&activity, "order", NULL);
	spoor_activity_stop(&activity);
	(void)spoor_session_stop(session);
	spoor_session_free(session);
	spoor_stop();
	printf("seen: %d %d %d %d\n", seen[0], seen[1], seen[2], seen[3]);
	return seen[0] == 2 && seen[1] == 1 && seen[2] == 1 && seen[3] == 1 ? 0 : 1;
}
END
cat >other.c <<'END'
#include "events.h"
void plugin(void);
void other(void)
{
	shop_bill(8);
	plugin();
}
END
cat >plugin.c <<'END'
#include <spoor/spoor.h>
SPOOR_PROVIDER(own, "Plugin")
SPOOR_EVENT(own, work, 1, SPOOR_INFO, 0x1, (u32, id))
SPOOR_PROVIDER_OF_OBJECT(own)
void plugin(void);
void plugin(void)
{
	own_work(9);
}
END

tried=0 left_out=0
leave_out() {
	echo "not tried: $*"
	left_out=$((left_out + 1))
}

# links COMPILER LINKER OPTION...: does this compiler link an ordinary program with these options?
echo 'int main(void) { return 0; }' >empty.c
links() {
	links_cc=$1 links_linker=$2
	shift 2
	"$links_cc" "-fuse-ld=$links_linker" "$@" empty.c -o empty >log 2>&1 && ./empty
}

# compile COMPILER FOLDER OPTION...: the objects of all programs of this compiler with these options.
compile() {
	cc=$1 folder=$2
	shift 2
	mkdir "$folder"
	for file in main other plugin; do
		"$cc" -O2 -ffunction-sections -fdata-sections -Wall -Werror "-I$top/include" "$@" -c $file.c -o "$folder/$file.o"
	done
	"$cc" -O2 -ffunction-sections -fdata-sections -Wall -Werror "-I$top/include" "$@" -fPIC -c plugin.c -o "$folder/shared.o"
}

# try FOLDER COMPILER LINKER OPTION...
try() {
	folder=$1 cc=$2 linker=$3
	shift 3
	for library in static shared; do
		for place in program object; do
			case $library in
			static) libspoor="$build/libspoor.a -lm -ldl -pthread" ;;
			shared) libspoor="$build/libspoor.so -Wl,-rpath,$build" ;;
			esac
			# A program with the static library exports it to its shared objects.
			[ "$library-$place" != static-object ] || libspoor="$libspoor -rdynamic"
			# shellcheck disable=SC2086 # lists of words
			if [ "$place" = program ]; then
				"$cc" -O2 "-fuse-ld=$linker" "$@" -Wl,--gc-sections "$folder/main.o" "$folder/other.o" "$folder/plugin.o" $libspoor -o tried
			else
				"$cc" -O2 "-fuse-ld=$linker" "$@" -Wl,--gc-sections -fPIC -shared "$folder/shared.o" -o libplugin.so
				"$cc" -O2 "-fuse-ld=$linker" "$@" -Wl,--gc-sections "$folder/main.o" "$folder/other.o" ./libplugin.so $libspoor -o tried
			fi
			result=$(timeout 60 ./tried) || {
				echo "FAILED: $cc -fuse-ld=$linker $* with the $library library, plugin in the $place: $result"
				exit 1
			}
			tried=$((tried + 1))
		done
	done
}

clang=clang
command -v clang >/dev/null || clang=clang-14
for cc in gcc $clang; do
	command -v $cc >/dev/null || {
		leave_out "$cc is not installed"
		continue
	}
	compile $cc $cc.plain
	compile $cc $cc.lto -flto
	for linker in bfd gold lld; do
		if ! links $cc $linker -Wl,--gc-sections; then
			leave_out "$cc with $linker, which is not installed"
			continue
		fi
		try $cc.plain $cc $linker
		if links $cc $linker -Wl,-z,start-stop-gc && ! grep -q warning log; then
			try $cc.plain $cc $linker -Wl,-z,start-stop-gc
		else
			leave_out "$cc with $linker: it has no -z start-stop-gc"
		fi
		if links $cc $linker -flto; then
			try $cc.lto $cc $linker -flto
		else
			leave_out "$cc with $linker: no link time optimisation"
		fi
	done
done
[ $tried -gt 0 ] || {
	echo "skipped: no compiler with a linker"
	exit 77
}
echo "$tried programs with all events; $left_out combinations not tried"
