#!/bin/sh
# The arm64 build, if a cross compiler is installed: the library builds with the forwarders of that processor and two exports, the enabled test has no call, and under an emulator the
# forwarders pass fifteen arguments through every slot, as on this machine.
. "$(dirname "$0")/prelude"
cc=aarch64-linux-gnu-gcc
command -v $cc >/dev/null || skip "$cc is not in PATH (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross)"
cflags="-std=gnu17 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -D_GNU_SOURCE -I$top -DSPOOR_VERSION=\"test\""

# shellcheck disable=SC2086 # a list of words
$cc $cflags -shared "$top"/gc/proxy/proxy*.c "$top/gc/events.c" "$top/gc/interface.c" -o "$work/proxy.so" -Wl,--version-script="$top/gc/exports.map" \
	-Wl,-z,defs -pthread || wrong "the proxy does not build for arm64"
same "exports on arm64" "$(aarch64-linux-gnu-nm -D --defined-only "$work/proxy.so" | awk '{ print $NF }' | sort | tr '\n' ' ')" 'GC_Initialize GC_VersionInfo '

printf '#include "gc/events.h"\nint on(void);\nint on(void) { return gc_event_on_GCStart_V2() ? 17 : 18; }\n' >"$work/on.c"
# shellcheck disable=SC2086
$cc $cflags -c "$work/on.c" -o "$work/on.o"
aarch64-linux-gnu-objdump -d --no-show-raw-insn "$work/on.o" | awk '/<on>:/ { on = 1; next } on && /^$/ { exit } on' >"$work/on.s"
[ -s "$work/on.s" ] || wrong "no code of the enabled test"
grep -qE '	(bl|blr|dmb|ldar|ldaxr) ' "$work/on.s" && wrong "the enabled test has a call or a barrier on arm64"

# The forwarders' test without cmocka: the assertions below replace it.
emulator=''
for name in qemu-aarch64 qemu-aarch64-static; do
	command -v $name >/dev/null && emulator=$name
done
if [ -z "$emulator" ]; then
	echo "note: built, not run: no qemu-aarch64 (Debian: qemu-user)"
	end
fi
cat >"$work/run.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#define assert_int_equal(a, b) ((uint64_t)(a) == (uint64_t)(b) ? (void)0 : (printf("line %d\n", __LINE__), exit(1)))
#define assert_true(a) assert_int_equal(!!(a), 1)
#define assert_false(a) assert_int_equal(!!(a), 0)
#define assert_non_null(a) assert_true(a)
#define assert_string_equal(a, b) assert_int_equal(strcmp(a, b), 0)
#define cmocka_unit_test(f) { f }
struct CMUnitTest { void (*run)(void **); };
#define cmocka_run_group_tests(tests, a, b) run_all(tests, sizeof(tests) / sizeof(*tests))
static int run_all(const struct CMUnitTest *tests, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		tests[i].run(0);
	puts("ran");
	return 0;
}
#define SPOOR_TESTS_UNIT_TEST_H
END
cat "$here/test_interface.c" >>"$work/run.c"
sed -i '1i #include <stdint.h>\n#include <string.h>\n#include <stdarg.h>' "$work/run.c"
# shellcheck disable=SC2086
$cc $cflags -I"$top/tests" -Wno-unused-parameter "$work/run.c" "$top/gc/interface.c" "$top/gc/proxy/proxy_forward.c" -o "$work/run" || wrong "the forwarders' test does not build for arm64"
same "the forwarders under $emulator" "$($emulator -L /usr/aarch64-linux-gnu "$work/run" 2>&1)" ran
end
