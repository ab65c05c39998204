#!/bin/sh
# amalgamation.sh COMPILER: two runs make the same spoor.c and spoor.h; they compile alone without a warning, define only names with spoor_, and work.
set -eu
cc=$1
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$top/scripts/amalgamate" "$work/a"
# A relative folder is one of the caller's.
(cd "$work" && "$top/scripts/amalgamate" b)
cmp "$work/a/spoor.c" "$work/b/spoor.c"
cmp "$work/a/spoor.h" "$work/b/spoor.h"
cd "$work/a"
"$cc" -std=gnu17 -O1 -g -Wall -Wextra -Werror -fno-omit-frame-pointer -fno-optimize-sibling-calls -c spoor.c -o spoor.o
"$cc" -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -c spoor.c -o strict.o
if nm -g --defined-only spoor.o | grep -v ' spoor_'; then
	echo "FAILED: these names are seen by the program that takes spoor.c in"
	exit 1
fi
# The program includes the one header under the name it has there.
sed -e 's|<spoor/spoor.h>|"spoor.h"|' -e '/<spoor\//d' "$top/tests/lib/adopter.c" >adopter.c
"$cc" -std=gnu17 -Wall -Wextra -Werror adopter.c spoor.o -o adopter -lm -ldl -pthread
timeout 60 ./adopter
echo "one file, $(wc -l <spoor.c) lines"
