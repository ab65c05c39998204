#!/bin/sh
# Lines and inlined functions of 10,000 addresses are those of addr2line and llvm-symbolizer: of Spoor, of the C library, and of C++ programs with functions inside others.
. "$(dirname "$(realpath "$0")")/../prelude"
command -v addr2line >/dev/null || skip "addr2line is not in PATH"
command -v python3 >/dev/null || skip "python3 is not in PATH"
rows=$(dirname "$spoor")/tests/line_rows

# compare FILE LEAST [READER]: all rows agree but those that are allowed to differ, and at least LEAST have inlined functions.
compare() {
	code_of python3 "$here/line_rows.py" "${3:-$rows}" "$1"
	wrong=$(sed -n 's/^[0-9]* rows, [0-9]* with inlined functions, \([0-9]*\) wrong$/\1/p' out)
	inlined=$(sed -n 's/^[0-9]* rows, \([0-9]*\) with inlined functions, [0-9]* wrong$/\1/p' out)
	[ "${wrong:-10001}" -le $allowed ] || fail "the lines of $1 differ"
	[ "${inlined:-0}" -ge "$2" ] || fail "$1 has ${inlined:-no} rows with inlined functions, of at least $2"
	compared="$compared $1"
}
compared=''
# A row is right if one of the two has it, as each has faults of its own. One alone is wrong in some of 10,000.
allowed=0
command -v llvm-symbolizer >/dev/null || allowed=10

# Functions inside others: lambdas in inlined functions and in templates, member functions of a local class, a cold part.
cat >nested.cc <<'END'
#include <algorithm>
#include <cstdio>
#include <functional>
#include <regex>
#include <string>
#include <vector>
template <typename T> static std::function<T(T)> maker(T factor)
{
	struct local {
		T factor;
		__attribute__((noinline)) T scaled(T x) const
		{
			if (x == T(7777))
				throw std::string("cold");
			return std::max(x * factor, T(3));
		}
	};
	return [factor](T x) {
		auto inner = [&](T y) __attribute__((noinline)) { return std::min(y + factor, T(100000)); };
		return local{ factor }.scaled(inner(x));
	};
}
int main(int argc, char **argv)
{
	std::vector<long> numbers;
	auto f = maker<long>(argc);
	auto g = maker<double>(argc);
	std::regex pattern("([a-z]+)([0-9]+)", argc > 3 ? std::regex::icase : std::regex::ECMAScript);
	for (long i = 0; i < 1000; i++) {
		std::smatch match;
		std::string text = "item" + std::to_string(i % 13);
		if (std::regex_match(text, match, pattern))
			numbers.push_back(f(i) + (long)g((double)i) + std::stol(match[2]));
	}
	std::sort(numbers.begin(), numbers.end(), [](long a, long b) { return a % 100 < b % 100; });
	return printf("%ld %s\n", numbers[argc], argv[0]) < 0;
}
END
# build COMPILER PROGRAM: it takes most of the time of this test, so ccache keeps the object file where it is installed.
build() {
	CCACHE_NOHASHDIR=1 $(command -v ccache) "$1" -std=c++17 -O2 -g -c -o "$2.o" nested.cc 2>err && "$1" -o "$2" "$2.o" 2>err
}
if command -v g++ >/dev/null; then
	build g++ nested || fail "g++"
	compare nested 5000
	# A reader without the inlined functions is found out.
	printf '#!/bin/sh\nexec %s "$1" | awk '"'"'/^0x/ { if (last) print last; print; last = ""; n = 0; next } { last = n++ %% 2 ? last "\\n" $0 : $0 } END { print last }'"'"'\n' "$rows" >poor
	chmod +x poor
	code_of python3 "$here/line_rows.py" ./poor nested 500
	[ "$code" = 1 ] || fail "the comparison finds no difference"
fi
# addr2line of binutils 2.40 finds few inlined functions in what Clang writes.
if command -v clang++ >/dev/null && command -v llvm-symbolizer >/dev/null && build clang++ nested_clang; then
	compare nested_clang 5000
fi
if readelf -SW "$spoor" | grep -q '\.debug_info'; then
	compare "$spoor" 1
fi
libc=$(ldd "$spoor" 2>/dev/null | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
id=$(readelf -n "${libc:-/nothing}" 2>/dev/null | sed -n 's/.*Build ID: //p')
debug="/usr/lib/debug/.build-id/$(printf %.2s "$id")/${id#??}.debug"
if [ -n "$id" ] && [ -e "$debug" ]; then
	compare "$debug" 1000
fi
[ -n "$compared" ] || skip "there is no file with lines: no g++, no debug information"
echo "compared:$compared"
