#!/bin/sh
# logger_dtrace.sh SPOOR: libspoor without sessions for macOS, on Linux with a stand-in for DTrace's probes: names, levels and fields as JSON. The same library, and a program with it, compile and link for both kinds
# of macOS with zig (scripts/setup all). They are not run there.
here=$(dirname "$(realpath "$0")")
. "$here/../feature/prelude"
top=$(realpath "$here/../..")
for tool in gcc python3 jq; do
	command -v $tool >/dev/null || skip "no $tool here"
done

# probes FILE: macros as `dtrace -h` makes them of the provider's file, that call the stand-in.
probes() {
	echo 'extern int libspoor_on[6];'
	echo 'void libspoor_hit(int level, const char *provider, const char *event, unsigned id, unsigned long long keywords, const char *fields);'
	sed -nE 's/^\tprobe ([a-z]+)\(char \*provider, char \*event, uint32_t id, uint64_t keywords, char \*fields\);$/\1/p' "$top/lib/logger/spoor_dtrace.d" | awk '{
		print "#define LIBSPOOR_" toupper($1) "_ENABLED() (libspoor_on[" NR - 1 "])"
		print "#define LIBSPOOR_" toupper($1) "(...) libspoor_hit(" NR - 1 ", __VA_ARGS__)" }'
}
# runs NAME FLAGS
runs() {
	mkdir -p "$1/objects"
	probes >"$1/objects/spoor_dtrace.h"
	[ "$(grep -c _ENABLED "$1/objects/spoor_dtrace.h")" = 6 ] || fail "not six probes"
	CC=gcc CFLAGS="-D_GNU_SOURCE $2" "$top/scripts/libspoor-direct" "$1" linux-dtrace >err 2>&1 || fail "the library does not compile"
	gcc -std=gnu11 -O1 -Wall -Wextra -Werror $2 -I"$1/include" -I"$1/objects" -I"$top/tests" "$here/dtrace_writer.c" "$1/libspoor.a" -lpthread -lm -o "$1/writer" 2>err ||
		fail "the writer does not build"
	"$1/writer" >written 2>err || fail "the writer fails ($?)"
}
runs plain ''
jq -cS . written >found 2>err || fail "no JSON"
cat >expected <<'JSON'
{"level":"info","provider":"Types","event":"Plain","id":1,"keywords":"0x11","fields":{"Yes":true,"I8":-8,"U8":200,"I16":-1600,"U16":60000,"I32":-320000,"U32":4000000000,"I64":-64000000000,"U64":18000000000000000000,"F32":1.25,"F64":-2.5,"Char":"€","Guid":"33221100554477668899aabbccddeeff","Time":133444736001234567,"Pointer":"0x7f0012345678","Text":"grüß 🐟","Text16":"wä€"}}
{"level":"info","provider":"Types","event":"Nested","id":3,"keywords":"0x0","fields":{"First":9,"Point":{"X":-2,"Y":2.5,"Label":"€"},"Last":77}}
{"level":"always","provider":"Types","event":"Nothing","id":4,"keywords":"0x0","fields":{}}
{"level":"info","provider":"Types","event":"Plain","id":1,"keywords":"0x11","fields":{"Yes":true,"I8":-8,"U8":200,"I16":-1600,"U16":60000,"I32":-320000,"U32":4000000000,"I64":-64000000000,"U64":18000000000000000000,"F32":1.25,"F64":-2.5,"Char":"€","Guid":"33221100554477668899aabbccddeeff","Time":133444736001234567,"Pointer":"0x7f0012345678","Text":"grüß 🐟","Text16":"wä€"}}
{"level":"verbose","provider":"Types","event":"Arrays","id":2,"keywords":"0x0","fields":{"Blob":"0102ff","Numbers":[7,0,4294967295],"Doubles":[0.5,-2],"Texts":["one","","dräi"],"Point":{"X":1,"Y":1.5,"Label":"a"},"Points":[{"X":1,"Y":1.5,"Label":"a"},{"X":-2,"Y":2.5,"Label":"€"}],"Last":65535}}
{"level":"info","provider":"Types","event":"Nested","id":3,"keywords":"0x0","fields":{"First":9,"Point":{"X":-2,"Y":2.5,"Label":"€"},"Last":77}}
{"level":"always","provider":"Types","event":"Nothing","id":4,"keywords":"0x0","fields":{}}
{"level":"error","provider":"Odd","event":"text","id":1,"keywords":"0x8000000000000001","fields":{"value":"a \"quote\", a \\ and \u0001\u001f\n","number":null,"least":-9223372036854775808,"most":18446744073709551615}}
JSON
jq -cS . expected >wanted
diff wanted found >out || fail "other events than were fired"
runs checked '-fsanitize=address,undefined -fno-sanitize-recover=all'

zig=${ZIG:-zig}
command -v "$zig" >/dev/null || zig=${SPOOR_TEST_PROGRAMS:-$top/build-programs}/zig/zig
command -v "$zig" >/dev/null || skip "zig is not here: scripts/setup all installs it"
# zig compiles its own parts for each kind of macOS. They are kept in the build folder.
export ZIG_GLOBAL_CACHE_DIR="$(dirname "$spoor")/zig-cache" ZIG_LOCAL_CACHE_DIR="$(dirname "$spoor")/zig-cache"
# macOS's linker makes the symbols of a section's ends; zig's does not.
for end in start end; do
	printf '__asm__(".section __DATA,spoor_events\\n.globl \\"section$%s$__DATA$spoor_events\\"\\n\\"section$%s$__DATA$spoor_events\\":\\n");\n' $end $end >$end.c
done
for target in aarch64-macos x86_64-macos; do
	mkdir -p $target/objects
	probes >$target/objects/spoor_dtrace.h
	CC="$zig cc -target $target" AR="$zig ar" "$top/scripts/libspoor-direct" $target macos >err 2>&1 || fail "the library does not compile for $target"
	"$zig" cc -target $target -std=gnu11 -Wall -Wextra -Werror -I$target/include -I$target/objects -I"$top/tests" start.c "$here/dtrace_writer.c" $target/libspoor.a end.c -o program.$target 2>err ||
		fail "a program does not link for $target"
	[ "$(od -An -tx4 -N4 program.$target | tr -d ' ')" = feedfacf ] || fail "it is no Mach-O file"
done
echo "a program with the logger links for two kinds of macOS"
exit 0
