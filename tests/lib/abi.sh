#!/bin/sh
# abi.sh [--record] BUILD-FOLDER: the binary interface of libspoor.so is the recorded one, tests/lib/abi/MACHINE.txt: symbols with their versions, prototypes, sizes of
# structs and offsets of their members, values of enums and macros. A missing or changed line breaks programs that were built before; a new one is recorded
# with `make abi`. Needs gcc, which prints the prototypes.
set -eu
record=''
[ "$1" != --record ] || {
	record=1
	shift
}
build=$(realpath "$1")
top=$(realpath "$(dirname "$0")/../..")
known=$top/tests/lib/abi/$(uname -m).txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LC_ALL=C
export LC_ALL

command -v gcc >/dev/null && gcc --version | head -n 1 | grep -qv clang || {
	echo "skipped: gcc, which writes prototypes down, is not installed"
	exit 77
}
[ -n "$record" ] || [ -e "$known" ] || {
	echo "skipped: no interface is recorded for $(uname -m)"
	exit 77
}

# generated.h and user_events.h are parts of generated code, all of them inline: no program depends on them in the library.
for header in "$top"/include/spoor/*.h; do
	case ${header##*/} in generated.h | user_events.h) continue ;; esac
	echo "#include <spoor/${header##*/}>"
done >"$work/all.c"
cd "$work"
# ccache keeps no prototypes.
export CCACHE_DISABLE=1
gcc -std=c11 -I"$top/include" -fsyntax-only -aux-info prototypes all.c
gcc -std=c11 -I"$top/include" -gdwarf-4 -fno-eliminate-unused-debug-types -c all.c -o all.o
{
	# The symbols for the dynamic linker.
	nm -D --defined-only --with-symbol-versions "$build/libspoor.so" | awk '$3 ~ /^spoor_|^SPOOR_/ { print "symbol", $2, $3 }' | sort
	# The declarations for the compiler: functions of the library, then the inline ones that are compiled into programs.
	sed -n 's|^/\* .*include/spoor/[a-z_]*\.h:[0-9]*:[A-Z]* \*/ *||p' prototypes | sed 's/ *;.*/;/; s/ (/(/' | sed 's/^/function /' | sort -u
	readelf --debug-dump=info all.o | awk '
		/Abbrev Number: 0/ { next }
		/Abbrev Number:/ { flush(); tag = $0; sub(/.*\(/, "", tag); sub(/\).*/, "", tag); depth = $1; sub(/^</, "", depth); sub(/>.*/, "", depth); name = size = place = value = ""; next }
		/DW_AT_name/ { name = $NF }
		/DW_AT_byte_size/ { size = $NF }
		/DW_AT_data_member_location/ { place = $NF }
		/DW_AT_const_value/ { value = $NF }
		END { flush() }
		function flush() {
			if (tag == "DW_TAG_structure_type") {
				outer = name
				if (name ~ /^spoor_/ && size != "") print "struct", name, size
			} else if (tag == "DW_TAG_member" && depth == 2 && outer ~ /^spoor_/)
				print "struct", outer "." name, "at", place
			else if (tag == "DW_TAG_enumeration_type")
				outer = ""
			else if (tag == "DW_TAG_enumerator" && name ~ /^SPOOR_/)
				print "enum", name, value
			tag = ""
		}
	' | sort -u
	gcc -std=c11 -I"$top/include" -E -dM all.c | awk '$2 ~ /^SPOOR_[A-Z0-9_]+$/ && $3 ~ /^[0-9]+u?$/ { print "macro", $2, $3 }' | grep -v 'SPOOR_VERSION_\|SPOOR_BYTES_' | sort
} >now.txt
for kind in symbol function struct enum macro; do
	grep -q "^$kind " now.txt || {
		echo "FAILED: no $kind was found: the reader of the interface is broken"
		exit 1
	}
done
if [ -n "$record" ]; then
	cp now.txt "$known"
	echo "$(wc -l <"$known") lines in $known"
	exit 0
fi
diff "$known" now.txt >difference && exit 0
if grep -q '^<' difference; then
	echo "FAILED: programs that were built with libspoor would break:"
	grep '^<' difference
	echo "In their place:"
fi
grep '^>' difference || :
echo "FAILED: the interface is not the recorded one. \`make abi\` records it, where it is meant."
exit 1
