#!/bin/sh
# Under each library a heap snapshot has the same content as under the runtime's own collector, and a crash leaves a dump.
. "$(dirname "$0")/prelude"
watcher

# snapshot VARIABLE=VALUE...: nodes and edges in $work/facts.
snapshot() {
	rm -f "$work/ready" "$work/heap.nettrace"
	start "$work/out" env "$@" "$target/Target" wait "$work/ready"
	await "$work/ready"
	dotnet "$watch" record "$last" "$work/heap.nettrace" 6 1980001:5
	rm "$work/ready"
	wait "$last" || wrong "$*: $(cat "$work/out")"
	dotnet "$watch" facts "$work/heap.nettrace" "$top/gc/gc_events.def" >"$work/facts"
}

for version in $SPOOR_GC_VERSIONS; do
	target "$version"
	snapshot DOTNET_GCName=libclrgc.so
	nodes=$(fact heap_nodes)
	edges=$(fact heap_edges)
	for library in $libraries; do
		[ -e "$target/$library" ] || continue
		snapshot DOTNET_GCName="$library"
		echo ".NET $version, $library: $(fact heap_nodes) nodes, $(fact heap_edges) edges; the runtime's own collector $nodes, $edges"
		at_least ".NET $version, $library: nodes" "$(fact heap_nodes)" 2000
		# Two runs differ by the allocations of their sessions.
		for pair in "nodes $(fact heap_nodes) $nodes" "edges $(fact heap_edges) $edges"; do
			set -- $pair
			[ $(($2 * 100)) -ge $(($3 * 95)) ] && [ $(($2 * 100)) -le $(($3 * 105)) ] ||
				wrong ".NET $version, $library: $1 $2, the runtime's own collector $3"
		done
		same ".NET $version, $library: lost" "$(fact lost)" 0

		rm -f "$work/core"
		DOTNET_DbgEnableMiniDump=1 DOTNET_DbgMiniDumpType=2 DOTNET_DbgMiniDumpName="$work/core" DOTNET_GCName=$library \
			timeout 100 "$target/Target" crash >"$work/out" 2>&1 && wrong ".NET $version, $library: FailFast did not fail"
		if [ -e "$work/core" ]; then
			size=$(stat -c %s "$work/core")
			at_least ".NET $version, $library: bytes of the dump" "$size" 1000000
			[ "$size" -lt 1073741824 ] || wrong ".NET $version, $library: a dump of $size bytes"
		elif grep -qiE 'ptrace|not permitted' "$work/out"; then
			echo "note: createdump may not attach here: $(grep -iE 'ptrace|permitted' "$work/out" | head -n 1)"
		else
			wrong ".NET $version, $library: no dump: $(tail -n 3 "$work/out")"
		fi
		rm -f "$work/core"
	done
done
end
