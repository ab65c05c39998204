#!/bin/sh
# cpp.sh BUILD-FOLDER COMPILER: a program of a C file and a C++ file that share a header of events: both fire the same payloads, and the objects of
# <spoor/spoor.hpp> end what they started. Compiled without a warning, with and without exceptions.
set -eu
build=$(realpath "$1")
cc=$2
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
warnings='-pedantic -Wall -Wextra -Wshadow -Wconversion -Wundef -Wcast-qual -Werror'

"$cc" -std=c11 $warnings -I"$top/include" -c "$here/both_part.c" -o part.o
# A header for both languages, whose declarations are in one bracket.
cat >bracket.cc <<'END'
#include <spoor/spoor.hpp>
extern "C" {
SPOOR_PROVIDER(both, "Both")
SPOOR_EVENT(both, order, 1, SPOOR_INFO, 0x1, (u32, number), (text, name))
}
int main() { both_order(7, "x"); both_order(7, std::string_view("x")); }
END
# Literals and empty values as blobs and 16-bit texts: no warning, also of the optimizer.
cat >values.cc <<'END'
#include <vector>
#include <spoor/spoor.hpp>
#include <spoor/user_events.h>
SPOOR_PROVIDER(both, "Both")
SPOOR_EVENT(both, mixed, 1, SPOOR_INFO, 0x1, (text16, wide), (blob, bytes), (text, name))
int main()
{
	const std::vector<unsigned char> two{ 1, 2 };
	both_mixed(u"x", two, "x");
	both_mixed(u"", {}, std::string_view("x"));
	both_mixed(std::u16string_view(u"abc", 2), nullptr, "x");
	both_mixed(u"x", { two.data(), two.size() }, "x");
}
END
ran=0
for cxx in c++ clang++ clang++-14; do
	command -v "$cxx" >/dev/null || continue
	echo '#include <string_view>' | "$cxx" -x c++ -std=c++17 -fsyntax-only - 2>/dev/null || continue
	for mode in '-std=c++17 -O2' '-std=c++20 -O0 -fno-exceptions -fno-rtti'; do
		# shellcheck disable=SC2086 # lists of words
		"$cxx" $mode $warnings -I"$top/include" "$here/both_main.cc" part.o "$build/libspoor.a" -lm -ldl -pthread -o program
		result=$(timeout 120 ./program) || {
			echo "FAILED: $cxx $mode: $result"
			exit 1
		}
		# shellcheck disable=SC2086
		"$cxx" $mode $warnings -I"$top/include" -fsyntax-only bracket.cc
		# shellcheck disable=SC2086
		"$cxx" $mode $warnings -Wold-style-cast -Weffc++ -I"$top/include" -c values.cc -o values.o
		ran=$((ran + 1))
	done
done
[ $ran -gt 0 ] || {
	echo "skipped: no C++17 compiler with its library"
	exit 77
}
echo "$ran programs"
