#!/bin/sh
# The NuGet packages of managed/ are made, and have the library, its documentation, the license and a page. Skipped without a .NET SDK, or if NuGet does not send TraceEvent.
set -eu
build=$(realpath "$1")
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
	echo "skipped: $*"
	exit 77
}

command -v dotnet >/dev/null && [ -n "$(dotnet --list-sdks)" ] || skip "no .NET SDK is here"
command -v unzip >/dev/null || skip "no unzip is here"
! grep -q '^SPOOR_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" || skip "a sanitizer's build has the same packages"
export DOTNET_NOLOGO=1 DOTNET_CLI_TELEMETRY_OPTOUT=1
for name in Spoor.Listener Spoor.TraceEvent; do
	timeout 250 dotnet pack "$top/managed/$name" -c Release --artifacts-path "$work/parts" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$work/log" 2>&1 || {
		! grep -qE 'NU1301|NU1101|NU1102|NU1801' "$work/log" || skip "NuGet: $(grep -oE -m 1 'NU1[0-9]+: [^[]*' "$work/log")"
		cat "$work/log"
		exit 1
	}
	package=$(find "$work/parts/package" -name "$name.*.nupkg")
	unzip -l "$package" | awk '{ print $4 }' >"$work/list"
	for file in "lib/net8.0/$name.dll" "lib/net8.0/$name.xml" LICENSE README.md; do
		grep -qxF "$file" "$work/list" || {
			echo "FAILED: $package has no $file:"
			cat "$work/list"
			exit 1
		}
	done
done
