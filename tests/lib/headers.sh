#!/bin/sh
# headers.sh COMPILER: each public header compiles alone, as C11 and, where there is a C++ compiler, as C++17, without a warning; and so do declarations of every
# kind of field.
set -eu
cc=$1
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings='-pedantic -Wall -Wextra -Wshadow -Wconversion -Wundef -Wcast-qual -Werror -fsyntax-only'

for header in "$top"/include/spoor/*.h; do
	name=spoor/${header##*/}
	printf '#include <%s>\n#include <%s>\n' "$name" "$name" >"$work/alone.c"
	# shellcheck disable=SC2086 # a list of words
	"$cc" -std=c11 $warnings -Wstrict-prototypes -I"$top/include" "$work/alone.c"
done
cat >"$work/use.c" <<'END'
#include "all_types.h"
int main(void)
{
	types_fire_all();
	return types_plain_enabled() ? 1 : 0;
}
END
# shellcheck disable=SC2086
"$cc" -std=c11 $warnings -I"$top/include" -I"$top/tests/lib" "$work/use.c"

cat >"$work/use.cc" <<'END'
#include <spoor/spoor.h>
#include <spoor/activity.h>
#include <spoor/code.h>
#include <spoor/counter.h>
#include <spoor/recover.h>
#include <spoor/sink.h>
SPOOR_PROVIDER(shop, "Shop")
SPOOR_STRUCT(shop_point, (i32, x), (f64, y), (text, label), (blob, bytes), (boolean, ok), (u32_array, list), (text_array, texts))
SPOOR_EVENT(shop, tick, 1, SPOOR_INFO, 0)
SPOOR_EVENT_NAMED(shop, all, "All", 2, 0, SPOOR_VERBOSE, SPOOR_OPCODE_START, 0x8000000000000000, (boolean, a), (i8, b), (u8, c), (i16, d), (u16, e), (i32, f), (u32, g),
	(i64, h), (u64, i), (f32, j), (f64, k), (char16, l), (guid, m), (time, n), (pointer, o), (text, p), (text16, q), (blob, r), (u64_array, s), (text_array, t),
	(object, u, shop_point), (object_array, v, shop_point))
SPOOR_PROVIDER_OF_OBJECT(shop)
int main()
{
	shop_tick();
	return shop_all_enabled() && shop_tick_enabled() ? 1 : 0;
}
END
case $cc in
*clang*) cxx=$(echo "$cc" | sed 's/clang/clang++/') ;;
*) cxx=$(echo "$cc" | sed 's/gcc/g++/; s/\bcc$/c++/') ;;
esac
if ! command -v "$cxx" >/dev/null || ! echo 'int main() { return 0; }' | "$cxx" -x c++ -std=c++17 -fsyntax-only - 2>/dev/null; then
	echo "skipped: no C++ compiler beside $cc (the C half passed)"
	exit 77
fi
for header in "$top"/include/spoor/*.h "$top"/include/spoor/*.hpp; do
	printf '#include <spoor/%s>\n#include <spoor/%s>\n' "${header##*/}" "${header##*/}" >"$work/alone.cc"
	# shellcheck disable=SC2086
	"$cxx" -std=c++17 $warnings -I"$top/include" "$work/alone.cc"
done
# shellcheck disable=SC2086
"$cxx" -std=c++17 $warnings -I"$top/include" "$work/use.cc"
