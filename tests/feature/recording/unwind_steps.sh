#!/bin/sh
# Stacks are right at every instruction of real programs: C in libc, through PLT stubs and a signal frame, static, C++ with exceptions.
. "$(dirname "$(realpath "$0")")/../prelude"

[ "$(uname -m)" = x86_64 ] || skip "instructions are followed on x86-64 only"
walker=$(dirname "$spoor")/tests/test_unwind
unframed=$(dirname "$spoor")/tests/unframed
! is_sanitized || skip "it was built with a sanitizer: unit/test_unwind covers the walk there"

# steps NAME PROGRAM MOST: at most MOST chains of 1000 are wrong. Code that the C library adds to each program has no tables (__do_global_dtors_aux); and
# while an exception is thrown, libgcc replaces the saved registers and return address of its own frame before it leaves it.
steps() {
	"$walker" "$2" steps >out 2>err || fail "the walk through $1"
	read -r count _ wrong _ short _ <out
	[ "$count" -ge 2000 ] || fail "only $count instructions of $1"
	[ $((wrong * 1000)) -le $((count * $3)) ] || fail "$1: $(cat out)"
	[ $((short * 1000)) -le $((count * $3)) ] || fail "$1: $(cat out)"
	echo "$1: $(cat out)"
}

steps "C" "$unframed" 1
if command -v gcc >/dev/null && gcc -O2 -fomit-frame-pointer -static -o static "$here/unframed.c" 2>/dev/null; then
	steps "static C" ./static 1
fi
if command -v gcc >/dev/null && gcc -O2 -fomit-frame-pointer -fno-asynchronous-unwind-tables -g -o debug "$here/unframed.c" 2>/dev/null; then
	steps "C with .debug_frame" ./debug 1
fi
if command -v g++ >/dev/null && g++ -O2 -fomit-frame-pointer -o exceptions "$here/exceptions.cc" 2>/dev/null; then
	steps "C++ with exceptions" ./exceptions 5
fi
