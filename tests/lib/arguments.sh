#!/bin/sh
# arguments.sh COMPILER: declarations and calls of events compile without a warning, whatever the language, its version and its strict warnings: every type of
# field with literals, pointers, arrays and NULL, and in C++ with the standard's texts, containers and enumerations.
set -eu
cc=$1
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
case $cc in
*clang*) cxx=$(echo "$cc" | sed 's/clang/clang++/') ;;
*) cxx=$(echo "$cc" | sed 's/gcc/g++/; s/\bcc$/c++/') ;;
esac
both='-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wcast-align -Wwrite-strings -Wpointer-arith -Wformat=2 -Wredundant-decls
	-Wmissing-declarations -Wswitch-enum -Wswitch-default -Wfloat-equal -Wunused -Wdouble-promotion'
for_c='-Wdeclaration-after-statement -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wnested-externs'
for_cxx='-Wold-style-cast -Wzero-as-null-pointer-constant -Wextra-semi -Wnon-virtual-dtor -Woverloaded-virtual'

# Arguments that C and C++ take: TYPE OF THE FIELD|ARGUMENTS
cat >plain <<'END'
boolean|true
boolean|1
boolean|i > 3
boolean|!p
i8|-5
i8|INT8_MIN
u8|5
u8|UINT8_MAX
i16|-5
u16|5
u16|UINT16_MAX
i32|-5
i32|i
i32|'c'
u32|5
u32|5u
u32|UINT32_MAX
i64|-5
i64|i
i64|INT64_MIN
u64|5
u64|5u
u64|size
u64|sizeof(number)
u64|UINT64_MAX
f32|1.5f
f32|0
f64|1.5
f64|2
f64|i
char16|65
guid|&guid
guid|NULL
time|0
time|INT64_C(1700000000000000000)
pointer|p
pointer|&i
pointer|numbers
pointer|"literal"
pointer|NULL
text|"literal"
text|""
text|p
text|q
text|chars
text|constant
text|i ? "yes" : "no"
text|NULL
counted_text|"literal", 7
counted_text|p, 3
counted_text|p, size
counted_text|chars, sizeof(chars)
counted_text|NULL, 0
text16|units
text16|u"literal"
text16|u""
text16|NULL
blob|"bytes", 5
blob|p, size
blob|&guid, sizeof(guid)
blob|numbers, sizeof(numbers)
blob|NULL, 0
u32_array|numbers, 3
u32_array|&number, 1
u32_array|NULL, 0
i8_array|(const int8_t *)p, 3
u8_array|guid.bytes, sizeof(guid.bytes)
f64_array|doubles, sizeof(doubles) / sizeof(doubles[0])
text_array|texts, 2
text_array|constants, 2
text_array|&p, 1
text_array|NULL, 0
object, shop_place|&place
object, shop_place|NULL
object_array, shop_place|places, 2
object_array, shop_place|NULL, 0
END

# Arguments that C++ takes with <spoor/spoor.hpp>.
cat >standard <<'END'
boolean|yes
i32|kind::tea
u32|kind::coffee
u8|plain_a
u64|size
f32|1.5
char16|u'x'
time|std::chrono::system_clock::now()
text|std::string("a temporary")
text|string
text|const_string
text|view
text|std::string_view("literal")
text|view.substr(1)
text|string + "x"
text|"literal"
text|p
text|q
text|chars
text|nullptr
counted_text|string
counted_text|view
counted_text|"literal"
text16|u"literal"
text16|wide
text16|std::u16string_view(wide)
blob|string
blob|vector
blob|std::vector<char>(3)
u32_array|vector
u32_array|const_vector
u32_array|std::vector<uint32_t>{ 1, 2 }
u32_array|array
u32_array|numbers
u32_array|spoor::span<uint32_t>(numbers, 2)
f64_array|std::vector<double>{ 1.5 }
text_array|std::vector<const char *>{ "a", "b" }
text_array|std::vector<std::string>{ "a", "b" }
text_array|std::vector<std::string_view>{ "a", "b" }
text_array|std::array<const char *, 2>{ { "a", "b" } }
text_array|std::array<std::string, 1>{ { "a" } }
text_array|texts
text_array|constants
text_array|strings
text_array|spoor::texts(strings, 1)
object_array, shop_place|std::vector<shop_place>(2)
END

# program FILE-OF-ARGUMENTS HEADER: an event and a call for each line.
program() {
	cat <<END
#include <stddef.h>
#include <$2>
SPOOR_PROVIDER(shop, "Shop")
SPOOR_STRUCT(shop_place, (text, name), (u16, port), (guid, id), (u32_array, list), (text_array, texts), (blob, bytes), (boolean, open))
SPOOR_EVENT(shop, empty, 1000, SPOOR_INFO, 0)
SPOOR_EVENT_NAMED(shop, full, "Full", 1001, 2, SPOOR_VERBOSE, SPOOR_OPCODE_START, 0x8000000000000000, (i32, (error, "errno")), (text, name))
END
	[ "$1" = plain ] || cat <<'END'
#include <array>
#include <vector>
enum class kind : unsigned char { tea, coffee };
enum plain_kind { plain_a, plain_b };
END
	awk -F'|' '{
		split($1, part, ", ")
		printf "SPOOR_EVENT(shop, e%d, %d, SPOOR_INFO, 0x1, (%s, it%s))\n", NR, NR, part[1], part[2] ? ", " part[2] : ""
	}' "$1"
	[ "$1" = plain ] && echo 'extern void fire(int i, const char *p, char *q, size_t size);' || echo 'extern void fire(int i, const char *p, char *q, std::size_t size);'
	cat <<'END'
void fire(int i, const char *p, char *q, size_t size)
{
	static const struct shop_place place = { "home", 80, { { 1 } }, NULL, 0, NULL, 0, NULL, 0, true };
	static const struct shop_place places[2] = { { "a", 1, { { 1 } }, NULL, 0, NULL, 0, NULL, 0, true }, { "b", 2, { { 1 } }, NULL, 0, NULL, 0, NULL, 0, true } };
	static const struct spoor_guid guid = { { 1, 2, 3 } };
	static const uint32_t numbers[3] = { 1, 2, 3 };
	static const double doubles[2] = { 1.5, 2.5 };
	static const char *const constants[2] = { "a", "b" };
	static const char constant[] = "constant";
	static const spoor_char16 units[2] = { 65, 0 };
	const char *texts[2];
	uint32_t number = 7;
	char chars[8] = "chars";
END
	[ "$1" = plain ] || cat <<'END'
	const bool yes = true;
	std::string string = "string", strings[2];
	const std::string const_string = string;
	const std::string_view view = string;
	const std::u16string wide = u"wide";
	std::vector<uint32_t> vector = { 1, 2 };
	const std::vector<uint32_t> const_vector = vector;
	const std::array<uint32_t, 2> array = { { 1, 2 } };
	static_cast<void>(yes);
END
	printf '\ttexts[0] = p;\n\ttexts[1] = q;\n\tshop_empty();\n\tshop_full(i, p);\n'
	awk -F'|' '{ printf "\tshop_e%d(%s);\n", NR, $2 }' "$1"
	cat <<'END'
	if (shop_e1_enabled() && i && p && q && size && number && places[0].port && place.port && guid.bytes[0] && numbers[0] && doubles[0] > 1 && constants[0] && constant[0] && units[0] &&
		chars[0] && texts[0])
		shop_empty();
}
SPOOR_PROVIDER_OF_OBJECT(shop)
SPOOR_START_IN_CONSTRUCTOR(NULL)
END
}

# compile COMPILER FILE FLAG...: no output.
calls=0
compile() {
	with=$1 file=$2
	shift 2
	"$with" "$@" -Werror -I"$top/include" -c "$file" -o x.o >out 2>&1 || {
		echo "FAILED: $with $* $file"
		head -n 20 out
		exit 1
	}
	calls=$((calls + $(grep -c '^	shop_e[0-9]' "$file")))
}

program plain spoor/spoor.h >plain.c
# C++ has other forms for parts that are not the library's: NULL, the cast and the struct's type.
sed 's/NULL/nullptr/g; s/(const int8_t \*)p/reinterpret_cast<const int8_t *>(p)/; s/struct shop_place place/shop_place place/' plain.c >plain.cc
program standard spoor/spoor.hpp | sed 's/NULL/nullptr/g' >standard.cc
ran=0
for std in c11 c17 c2x gnu11 gnu2x; do
	for optimize in -O0 -O2; do
		# shellcheck disable=SC2086 # lists of words
		compile "$cc" plain.c -std=$std $optimize $both $for_c
		ran=$((ran + 1))
	done
done
# accepts STANDARD: the C++ compiler has it, with its library.
accepts() {
	command -v "$cxx" >/dev/null && printf '#include <string>\nint main() { return 0; }\n' | "$cxx" -x c++ "-std=$1" -fsyntax-only - 2>/dev/null
}
for std in c++11 c++14 c++17 c++20 c++23; do
	accepts $std || continue
	# shellcheck disable=SC2086
	compile "$cxx" plain.cc -std=$std -O2 $both $for_cxx
	case $std in c++11 | c++14) ;; *)
		# shellcheck disable=SC2086
		compile "$cxx" standard.cc -std=$std -O2 $both $for_cxx
		;;
	esac
	ran=$((ran + 1))
done
echo "$ran versions of the languages, $calls calls"
