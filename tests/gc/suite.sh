#!/bin/sh
# The suite of GC behaviour (tests/gc/suite) under .NET 10, 9 and 8 with each library, in the settings that change how a collector works. On each version it also runs
# under the runtime's own collector, so that it requires nothing else. SPOOR_GC_SUITE=quick: each library without settings, and with a limit of memory.
. "$(dirname "$0")/prelude"
. "$here/gcref_prelude"

# run NAME VERB VARIABLE=VALUE...
run() {
	name=$1
	verb=$2
	shift 2
	if ! env "$@" timeout 300 "$suite/Suite" "$verb" >"$work/out" 2>&1; then
		wrong "$name"
		grep -A 3 -E '^FAIL|^Unhandled|GC:' "$work/out" | head -n 20
		tail -n 2 "$work/out"
		return
	fi
	echo "ok  $name: $(tail -n 1 "$work/out")"
}

small='DOTNET_GCgen0size=0x100000'
limit='DOTNET_GCHeapHardLimit=0xC800000'
for version in $SPOOR_GC_VERSIONS; do
	publish "$version"
	run ".NET $version, its own collector" run DOTNET_TieredCompilation=1
	run ".NET $version, its own collector, 200 MB" limits $limit
	for library in libspoorgc libspoorgcproxy; do
		[ -e "$build/gc/$library.so" ] || continue
		use=DOTNET_GCName=$library.so
		run ".NET $version, $library" run $use
		run ".NET $version, $library, 200 MB" limits $use $limit
		[ "${SPOOR_GC_SUITE:-}" != quick ] || continue
		run ".NET $version, $library, each 1 MB, no tiering" run $use $small DOTNET_TieredCompilation=0
		run ".NET $version, $library, each 1 MB, server GC" run $use $small DOTNET_gcServer=1
	done
	[ "${SPOOR_GC_SUITE:-}" != quick ] || continue
	# More settings for the reference collector, some of which only it has: a range that is used up, a stack of marking that overflows, permanent
	# collections.
	use=DOTNET_GCName=libspoorgc.so
	run ".NET $version, libspoorgc, each 1 MB" run $use $small
	run ".NET $version, libspoorgc, server GC, no tiering" run $use DOTNET_gcServer=1 DOTNET_TieredCompilation=0
	run ".NET $version, libspoorgc, 200 MB, server GC" limits $use $limit DOTNET_gcServer=1
	# (The runtime's own collector of .NET 8 crashes with these, when it is loaded as a library.)
	run ".NET $version, libspoorgc, conservative roots" run $use $small DOTNET_gcConservative=1
	run ".NET $version, libspoorgc, in a range of 256 MB" limits $use DOTNET_GCRegionRange=0x10000000
	run ".NET $version, libspoorgc, a small stack for marking" run $use SPOOR_GC_MARK_STACK=65536
	run ".NET $version, libspoorgc, each 256 KB" run $use DOTNET_GCgen0size=0x40000
done
end
