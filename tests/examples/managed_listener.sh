#!/bin/sh
# managed_listener.sh BUILD-FOLDER: a .NET program reads the events of native threads through P/Invoke while its collector is made to run all the time. Skipped without a .NET SDK.
set -eu
build=$(realpath "$1")
top=$(realpath "$(dirname "$0")/../..")

skip() {
	echo "skipped: $*"
	exit 77
}

! grep -q '^SPOOR_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" ||
	skip "a sanitizer has to be there before everything else, which it is not in a runtime that loads libspoor"
. "$top/tests/programs"
program managed-listener
timeout 90 dotnet "$program" "$build/libspoor.so" "$build/examples/libfiring.so"
