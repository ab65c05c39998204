#!/bin/sh
# The libraries from outside: two exports, enabled tests without a call, headers that compile alone as C and as C++.
. "$(dirname "$0")/prelude"
cc=$2

for library in "$build"/gc/libspoorgc*.so; do
	names=$(nm -D --defined-only "$library" | awk '{ print $NF }' | sort | tr '\n' ' ')
	same "exports of ${library##*/}" "$names" 'GC_Initialize GC_VersionInfo '
	# It needs only libc.
	needs=$(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(libc\.so|libm\.so|libpthread\.so|libdl\.so|ld-linux)' || :)
	same "what ${library##*/} needs" "$needs" ''
done

cat >"$work/on.c" <<'END'
#include "gc/events.h"
int known(void);
int dynamic(void);
int private_one(void);
void fire(void);
int known(void) { return gc_event_on_GCStart_V2() ? 17 : 18; }
int dynamic(void) { return gc_event_on_SpoorGCRoots() ? 17 : 18; }
int private_one(void) { return gc_event_on_PrvSetGCHandle() ? 17 : 18; }
void fire(void) { gc_event_SpoorGCLost(1, 2); }
END
for compiler in "$cc" gcc clang; do
	command -v "$compiler" >/dev/null || continue
	"$compiler" -std=gnu17 -O2 -fPIC -fvisibility=hidden -I"$top" -c "$work/on.c" -o "$work/on.o" || {
		wrong "events.h does not compile with $compiler"
		continue
	}
	for function in known dynamic private_one; do
		objdump -dr --no-show-raw-insn "$work/on.o" |
			awk -v start="<$function>:" 'index($0, start) { on = 1; next } on && /^$/ { exit } on' >"$work/$function.s"
		[ -s "$work/$function.s" ] || wrong "no code of $function from $compiler"
		grep -qE '\b(call|bl|blr)\b' "$work/$function.s" && wrong "the enabled test $function has a call ($compiler)"
		grep -qE '\block\b|mfence|dmb' "$work/$function.s" && wrong "the enabled test $function has a barrier ($compiler)"
		instructions=$(grep -c '^ *[0-9a-f]*:	' "$work/$function.s" || :)
		[ "$instructions" -le 16 ] || wrong "the enabled test $function has $instructions instructions ($compiler)"
		at_least "instructions of $function" "$instructions" 4
		# Both words are read through one address: two relocations at most.
		loads=$(grep -c gc_event_status "$work/$function.s" || :)
		[ "$loads" -ge 1 ] && [ "$loads" -le 2 ] || wrong "the enabled test $function refers to the status $loads times ($compiler)"
	done
	# The path through fire() while no session exists has no call; the call is after the branch.
	objdump -d --no-show-raw-insn "$work/on.o" | awk '/<fire>:/ { on = 1; next } on && /^$/ { exit } on' >"$work/fire.s"
	awk '/\tj/ { branch = 1 } /\tcall|\tjmp .*gc_event_send/ { if (!branch) bad = 1 } /\tret/ { exit } END { exit bad }' "$work/fire.s" ||
		wrong "firing has a call before its test ($compiler)"
done

for path in interface events proxy/proxy_forward; do
	header=${path##*/}
	printf '#include "gc/%s.h"\n' "$path" >"$work/$header.c"
	"$cc" -std=gnu11 -Wall -Wextra -Wconversion -Wstrict-prototypes -Werror -I"$top" -fsyntax-only "$work/$header.c" || wrong "$header.h alone as C11"
	for cxx in g++ clang++; do
		command -v "$cxx" >/dev/null || continue
		"$cxx" -std=c++11 -Wall -Wextra -Werror -I"$top" -fsyntax-only -x c++ "$work/$header.c" || wrong "$header.h alone as C++11 ($cxx)"
	done
done
end
