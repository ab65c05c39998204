#!/bin/sh
# A C program under real collectors, without .NET (gc/host): the reference collector, the runtime's own libclrgc.so and libclrgcexp.so, and the proxy around it. Moving and
# non-moving collectors keep its objects, and TraceEvent and spoor count the collections that the program counts. Needs a compiler's output only and, for the runtime's
# collectors, a .NET runtime from scripts/test-programs.
. "$(dirname "$0")/prelude"
. "$top/tests/json"
program=$build/tests/gc/gc_host_program
[ -x "$program" ] || skip "gc_host_program is not built"
host_program=$program
watcher

# run_under NAME COLLECTOR DOTNET [VARIABLE=VALUE...]
run_under() {
	name=$1 collector=$2 dotnet=$3
	shift 3
	rm -f "$work/h.nettrace"
	code=0
	env "$@" "$host_program" "$collector" "$dotnet" "$work/h.nettrace" >"$work/out" 2>"$work/err" || code=$?
	[ $code = 0 ] || {
		wrong "$name: exit code $code: $(cat "$work/out" "$work/err")"
		return
	}
	[ ! -s "$work/err" ] || wrong "$name: it says: $(cat "$work/err")"
	facts "$work/h.nettrace"
	whole "$name"
	at_least "$name: collections" "$(fact gc_starts)" 60
	same "$name: collections in TraceEvent" "$(fact gc_starts)" "$(fact collections_0 "$work/out")"
	same "$name: complete ones in TraceEvent" "$(fact gcs_incomplete)" 0
	same "$name: finalized objects" "$(fact finalized "$work/out")" 501
	"$build/spoor" report --gc --json "$work/h.nettrace" >"$work/gc.json" || wrong "$name: spoor report --gc"
	# The program's number for a generation includes the older ones.
	for generation in 0 1 2; do
		same "$name: collections of generation $generation and older in spoor" \
			"$(value "$work/gc.json" "[.processes[].collections[] | select(.generation >= $generation)] | length")" "$(fact "collections_$generation" "$work/out")"
	done
}

for version in $SPOOR_GC_VERSIONS; do
	target "$version"
	run_under "libspoorgc.so, .NET $version" "$target/libspoorgc.so" "$version"
	run_under "libclrgc.so of .NET $version" "$target/libclrgc.so" "$version"
	[ ! -e "$target/libclrgcexp.so" ] || run_under "libclrgcexp.so of .NET $version" "$target/libclrgcexp.so" "$version"
	run_under "the proxy, .NET $version" "$target/libspoorgcproxy.so" "$version" SPOOR_GC_COLLECTOR="$target/libclrgc.so"
	at_least "the proxy, .NET $version: its events" "$(fact 'dynamic SpoorGCPause')" 60
done

# refused COLLECTOR DOTNET TEXT: the host does not open, and says why.
refused() {
	code=0
	"$host_program" "$1" "$2" "$work/r.nettrace" >"$work/out" 2>&1 || code=$?
	same "$1: exit code" "$code" 1
	grep -qF "$3" "$work/out" || wrong "$1: not '$3': $(cat "$work/out")"
}
echo text >"$work/text.so"
refused "$work/none.so" 10 'cannot load the collector'
refused "$work/text.so" 10 'cannot load the collector'
refused libc.so.6 10 "'libc.so.6' is no collector: it lacks GC_VersionInfo or GC_Initialize"
refused "$build/gc/libspoorgc.so" 7 '.NET 7 is not known: 8, 9 and 10 are'
end
