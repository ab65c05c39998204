#!/bin/sh
# types.sh BUILD-FOLDER: TraceEvent reads every field type of libspoor, declared and made at run time, with the right names and values (types.expected).
# Skipped without a .NET SDK, and where its one package cannot be fetched.
set -eu
build=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../..")
out=$build/types
mkdir -p "$out"

skip() {
	echo "skipped: $*"
	exit 77
}

. "$top/tests/programs"
program types
"$build/tests/lib/types_writer" "$out/types.nettrace"
dotnet "$program" "$out/types.nettrace" >"$out/types.txt"
diff -u "$here/types.expected" "$out/types.txt"
