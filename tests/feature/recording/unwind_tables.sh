#!/bin/sh
# The rules of unwind tables are those that binutils evaluates, row by row: of the C and C++ libraries, the dynamic linker, a program with .debug_frame, and of arm64 programs.
. "$(dirname "$(realpath "$0")")/../prelude"
rows=$(dirname "$spoor")/tests/unwind_rows

# compare NAME READELF FILE: each row of readelf, where it has a name for all registers. Several rows of one address: the last one holds.
compare() {
	[ -e "$3" ] || return 0
	"$2" --debug-dump=frames-interp "$3" 2>/dev/null | awk '
		function flush() { if (row != "") print row; row = "" }
		/ FDE / { flush(); fde = 1; end = $NF; sub(/.*[.][.]/, "", end); next }
		/ CIE / { flush(); fde = 0; next }
		/^ +LOC / { count = NF; for (i = 1; i <= NF; i++) name[i] = $i; next }
		fde && /^[0-9a-f]+ / && length($1) == 16 {
			if ($1 != at) flush()
			at = $1
			if ($1 == end) { row = ""; next } # behind the last instruction
			if (NF != count) { row = ""; next } # longjmp: "r9 (r9)", a register in another one
			row = $1 " " $2
			for (i = 3; i <= count; i++)
				if ($i != "u" && $i != "s" && name[i] !~ /^(v|d|xmm|st|mm)[0-9]/) row = row " " name[i] "=" $i
			next
		}
		{ flush() }
		END { flush() }' | sort -u >theirs
	cut -d' ' -f1 theirs | "$rows" "$3" | sort -u >ours
	total=$(wc -l <theirs)
	[ "$total" -gt 0 ] || fail "readelf has no rows of $1"
	comm -23 theirs ours >differ
	echo "$1: $total rows, $(wc -l <differ) differ"
	[ ! -s differ ] || { address=$(head -n 1 differ | cut -d' ' -f1) && grep "^$address" theirs ours; fail "$1: $(wc -l <differ) of $total rows differ"; }
}

command -v readelf >/dev/null || skip "there is no readelf"
for file in libc.so.6 ld-linux-x86-64.so.2 libstdc++.so.6 libgcc_s.so.1 libcrypto.so.3; do
	[ "$(uname -m)" != x86_64 ] || compare "$file" readelf "/lib/x86_64-linux-gnu/$file"
	[ ! -e "/usr/lib/x86_64-linux-gnu/$file" ] || [ -e "/lib/x86_64-linux-gnu/$file" ] || compare "$file" readelf "/usr/lib/x86_64-linux-gnu/$file"
done
runtime=$(find /usr/share/dotnet /usr/lib/dotnet -name libcoreclr.so 2>/dev/null | head -n 1)
[ -z "$runtime" ] || compare "libcoreclr.so" readelf "$runtime"
if command -v gcc >/dev/null && gcc -O2 -fno-asynchronous-unwind-tables -g -c -o debug.o "$here/unframed.c" 2>/dev/null && gcc -o debug debug.o; then
	compare "a program with .debug_frame" readelf ./debug
fi
if command -v aarch64-linux-gnu-gcc >/dev/null; then
	for options in "-O2 -fomit-frame-pointer" "-O0" "-O2 -mbranch-protection=standard"; do
		# shellcheck disable=SC2086
		aarch64-linux-gnu-gcc $options -static -o arm64 "$here/unframed.c" 2>err || continue
		compare "arm64, $options" aarch64-linux-gnu-readelf ./arm64
	done
else
	echo "arm64 is not compared: there is no aarch64-linux-gnu-gcc"
fi
