#!/bin/sh
# The USDT probes that spoor gen makes of manifests: GCC and Clang compile all of .NET's 515, whose notes have their names and arguments, and bpftrace reads the values of
# fired ones. DTrace's tool takes the provider files. Skipped without <sys/sdt.h> (systemtap-sdt-dev) or a compiler; the part with bpftrace, without root or it.
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
command -v gcc >/dev/null && command -v readelf >/dev/null || skip "no gcc or no readelf here"
echo '#include <sys/sdt.h>' >have.c
gcc -fsyntax-only have.c 2>/dev/null || skip "<sys/sdt.h> is not installed (systemtap-sdt-dev)"

# probes NAME MANIFEST: compiles all probes, and compares those in the objects with the manifest: name and number of arguments.
probes() {
	"$spoor" gen -q "$2" -o "$1" --only usdt --only json 2>err || fail "$2 is refused"
	: >notes
	for source in "$1"/*_usdt.c; do
		for flags in '-O0 -fPIC' -O2; do
			! command -v clang >/dev/null || [ "$flags" = -O2 ] || clang -std=gnu11 $flags -Wall -Wextra -Werror -I"$top/include" -c "$source" -o x.o 2>err ||
				fail "clang $flags does not compile $source"
			gcc -std=gnu11 $flags -Wall -Wextra -Werror -I"$top/include" -c "$source" -o "${source%.c}.o" 2>err || fail "gcc $flags does not compile $source"
		done
		readelf -n "${source%.c}.o" >>notes 2>/dev/null
	done
	if command -v g++ >/dev/null; then
		for header in "$1"/*_usdt.h; do
			g++ -std=c++17 -Wall -Wextra -Werror -I"$top/include" -fsyntax-only -x c++ "$header" 2>err || fail "g++ does not compile $header"
		done
	fi
	if command -v dtrace >/dev/null; then
		for file in "$1"/*_usdt.d; do
			# The same functions with the macros of dtrace -h, as on macOS: the probes and their arguments are the same.
			dtrace -h -s "$file" -o "${file%.d}_probes.h" 2>err || fail "dtrace does not take $file"
			gcc -std=gnu11 -O2 -Wall -Wextra -Werror -DSPOOR_USDT_BY_DTRACE -I"$top/include" -I"$1" -c "${file%.d}.c" -o x.o 2>err || fail "gcc does not compile $file with dtrace's macros"
			dtrace -h -s "$file" -o macros.h 2>err || fail "dtrace does not take $file"
			gcc -fsyntax-only -x c macros.h 2>err || fail "dtrace's macros of $file do not compile"
		done
	fi
	awk '/^ *Provider:/ { provider = $2 } /^ *Name:/ { name = $2 } /^ *Arguments:/ { print provider ":" name, NF - 1 }' notes | sort >ours
	# More than twelve arguments and structs are a length and a blob.
	jq -r '.providers[] | .prefix as $p | .events[] |
		"\($p):\(.symbol) \(if (.fields | length) > 12 or ([.fields[].type] | index("struct")) then 2 else (.fields | length) end)"' "$1/events.json" | sort >wanted
	diff wanted ours >out || fail "other probes than $1 has"
	! grep -q 'Arguments:.*@\$' notes || fail "an argument is a constant, which perf does not read"
	echo "$1: $(wc -l <ours) probes"
}
probes shop "$top/tests/data/manifest/shop.man"
probes eventsource "$top/tests/data/manifest/eventsource.man"
probes names "$top/tests/data/manifest/names.man"
manifests=$top/tests/data/manifest
probes AdvancedProvider "$manifests/AdvancedProvider.man"
probes ClrEtwAll "$manifests/ClrEtwAll.man"
[ "$(wc -l <ours)" = 515 ] || fail "$(wc -l <ours) probes, not 515"

[ "$(id -u)" = 0 ] && command -v bpftrace >/dev/null || {
	echo "left out: reading the probes needs root and bpftrace"
	exit 0
}
cat >main.c <<'END'
#include <unistd.h>
#include "acmeshop_usdt.h"
int main(void)
{
	static const struct spoor_guid id = { { 9 } };
	static const float prices[] = { 1.5f };
	static const int16_t sizes[] = { 3, 4 };
	const struct acmeshop_Pack_Args_Lines line = { "tea", 1, prices, { { 7 } } };

	/* Tracers do not wait for pages that were never touched. */
	char item[] = "caf\303\251";

	if (acmeshop_usdt_OrderTaken_enabled())
		return 1;
	/* Until the tracer has both probes. The test kills this program if none comes. */
	while (!acmeshop_usdt_OrderTaken_V1_enabled() || !acmeshop_usdt_OrderPacked_enabled())
		usleep(10000);
	acmeshop_usdt_OrderTaken();
	acmeshop_usdt_OrderTaken_V1(4294967295u, item, 2, 0x80000001u, true);
	acmeshop_usdt_OrderPacked(&id, 2.5, 0, "code", 3, "abc", sizes, 1, &line);
	return 0;
}
END
gcc -Wall -Werror -I"$top/include" -Ishop main.c shop/acmeshop_usdt.o -o fire 2>err || fail "the program does not build"
start firing ./fire
start tracing bpftrace -q -p "$firing" -e '
	usdt:'"$scratch"'/fire:acmeshop:OrderTaken_V1 { printf("taken %u %s %d %x %d\n", (uint32)arg0, str(arg1), arg2, (uint32)arg3, arg4); }
	usdt:'"$scratch"'/fire:acmeshop:OrderPacked { printf("packed %d %d %d\n", (uint32)arg0, *(uint8 *)arg1, *(uint64 *)(arg1 + 16) == 0x4004000000000000); }' \
	>traced 2>traced.err
until_true grep -q '^packed' traced || {
	! grep -qiE 'permission|not permitted|BTF|kernel' traced.err || skip "bpftrace cannot trace here: $(head -n 1 traced.err)"
	fail "bpftrace saw no probe: $(cat traced traced.err)"
}
# id 16, Weight 8, Packed 8, Code 8, LabelSize 2, Label 3, Sizes 4, Count 4, a line: 8 + 1 + 4 + 16.
has traced '^taken 4294967295 café 2 80000001 1$'
has traced '^packed 82 9 1$'
echo "bpftrace read the values of two probes"
exit 0
