#!/bin/sh
# types.sh BUILD-FOLDER: TraceEvent reads every field type of libspoor, declared and made at run time, with the right names and values (types.expected).
# Skipped without a .NET SDK, and where its one package cannot be fetched.
set -eu
build=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
out=$build/types
mkdir -p "$out"

skip() {
	echo "skipped: $*"
	exit 77
}

command -v dotnet >/dev/null || skip "no .NET SDK here: dotnet is not in PATH"
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1
code=0
timeout 90 dotnet restore "$here/types" --artifacts-path "$out/dotnet" -v quiet -nodeReuse:false >"$out/restore.log" 2>&1 || code=$?
if [ $code != 0 ]; then
	if [ $code = 124 ] || grep -qE 'NU1301|NU1101|NU1102|NU1801' "$out/restore.log"; then
		skip "NuGet could not be reached for Microsoft.Diagnostics.Tracing.TraceEvent"
	fi
	cat "$out/restore.log"
	exit 1
fi
dotnet build "$here/types" -c Release --no-restore --artifacts-path "$out/dotnet" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$out/build.log" 2>&1 || {
	cat "$out/build.log"
	exit 1
}
"$build/tests/lib/types_writer" "$out/types.nettrace"
dotnet "$out/dotnet/bin/types/release/types.dll" "$out/types.nettrace" >"$out/types.txt"
diff -u "$here/types.expected" "$out/types.txt"
