#!/bin/sh
# managed_listener.sh BUILD-FOLDER: a .NET program reads the events of native threads through P/Invoke while its collector is made to run all the time. Skipped without a .NET SDK.
set -eu
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../../examples/managed-listener")
out=$build/managed-listener
command -v dotnet >/dev/null || {
	echo "skipped: no .NET SDK here: dotnet is not in PATH"
	exit 77
}
if grep -q '^SPOOR_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt"; then
	echo "skipped: a sanitizer has to be there before everything else, which it is not in a runtime that loads libspoor"
	exit 77
fi
mkdir -p "$out"
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1 DOTNET_CLI_HOME="$out"
timeout 200 dotnet build "$source" -c Release --artifacts-path "$out/dotnet" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$out/build.log" 2>&1 || {
	cat "$out/build.log"
	exit 1
}
timeout 90 dotnet "$out/dotnet/bin/managed-listener/release/managed-listener.dll" "$build/libspoor.so" "$build/examples/libfiring.so"
