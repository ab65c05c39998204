#!/bin/sh
# The runtime's own collectors have the tables of interface.h: their entries are counted in the relocations of each libclrgc.so. A changed count means that a new runtime has to be
# checked. IGCHeap of the collector has four slots more than the runtime calls.
. "$(dirname "$0")/prelude"

# Runs of code pointers in .data.rel.ro, as "length times" lines.
runs() {
	text=$(readelf -SW "$1" | sed -n 's/.* \.text  *PROGBITS  *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\).*/\1 \2/p')
	readelf -rW "$1" | awk '$3 == "R_X86_64_RELATIVE" { print $1, $4 }' | sort | awk -v text="$text" '
		function number(hex,   i, n) {
			for (i = 1; i <= length(hex); i++)
				n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
			return n
		}
		function flush() {
			if (run)
				count[run]++
		}
		BEGIN { split(text, part, " "); begin = number(part[1]); end = begin + number(part[2]); last = -1 }
		{
			at = number($1); value = number($2); code = value >= begin && value < end
			if (code && at == last + 8) {
				run++
			} else {
				flush()
				run = code
			}
			last = code ? at : -1
		}
		END { flush(); for (run in count) print run, count[run] }'
}

for version in $SPOOR_GC_VERSIONS; do
	target "$version"
	heap=$(sed -n "/\.dotnet = $version,/,/}/s/.*\.heap_count = \([A-Z_0-9]*\),.*/\1/p" "$top/gc/interface.c")
	[ "$heap" != GC_HEAP_COUNT ] || heap=$(sed -n 's/#define GC_HEAP_COUNT //p' "$top/gc/interface.h")
	runs "$target/libclrgc.so" >"$work/runs"
	grep -q "^$((heap + 4)) " "$work/runs" || wrong ".NET $version: no table of $heap + 4 entries: $(tr '\n' ',' <"$work/runs")"
	grep -q '^18 ' "$work/runs" || wrong ".NET $version: no table of 18 entries (IGCHandleManager)"
	grep -q '^8 ' "$work/runs" || wrong ".NET $version: no table of 8 entries (IGCHandleStore)"
done
end
