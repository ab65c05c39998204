#!/bin/sh
# managed_listener.sh BUILD-FOLDER: a .NET program reads the events of native threads through P/Invoke while its garbage collector runs all the time. Skipped without a .NET SDK.
set -eu
build=$(realpath "$1")
top=$(realpath "$(dirname "$0")/../..")

skip() {
	echo "skipped: $*"
	exit 77
}

! grep -q '^SPOOR_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" ||
	skip "a sanitizer must be loaded before the runtime that loads libspoor"
. "$top/tests/programs"
program managed-listener
SPOOR_LIBRARY=$build/libspoor.so timeout 250 dotnet "$program" "$build/examples/libfiring.so"
