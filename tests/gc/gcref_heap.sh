#!/bin/sh
# A heap snapshot of a program whose objects are known (Suite hold), under the reference collector: it has each of them with its references and pairs. And a crash leaves a dump of
# moderate size.
. "$(dirname "$0")/prelude"
. "$here/gcref_prelude"
watcher
reader snapshot

# nodes TYPE: prints the number of objects in the snapshot.
nodes() {
	awk -v name="$1" '$1 == "node" && $2 == name { print $3; found = 1 } END { if (!found) print 0 }' "$work/snapshot"
}

for version in $SPOOR_GC_VERSIONS; do
	publish "$version"
	ours=0
	for use in DOTNET_GCName=libspoorgc.so DOTNET_gcServer=0; do
		rm -f "$work/ready" "$work/heap.nettrace"
		start "$work/out" env $use DOTNET_GCgen0size=0x400000 "$suite/Suite" hold "$work/ready"
		await "$work/ready"
		dotnet "$watch" record "$last" "$work/heap.nettrace" 6 1980001:5
		rm "$work/ready"
		wait "$last" || wrong "$use: $(cat "$work/out")"
		dotnet "$reader" "$work/heap.nettrace" >"$work/snapshot"
		name=".NET $version, $use"
		same "$name: nodes" "$(nodes Suite.KnownNode)" 20000
		same "$name: leaves" "$(nodes Suite.KnownLeaf)" 30000
		same "$name: arrays of leaves" "$(nodes 'Suite.KnownLeaf[]')" 1001
		same "$name: keys" "$(nodes Suite.KnownKey)" 500
		same "$name: values" "$(nodes Suite.KnownValue)" 500
		at_least "$name: strings" "$(nodes System.String)" 50
		at_least "$name: pairs of dependent handles" "$(awk '$1 == "pairs" { print $2 }' "$work/snapshot")" 500
		at_least "$name: handles" "$(awk '$1 == "handles" { print $2 }' "$work/snapshot")" 20
		# Nodes refer to one another and to leaves; 1000 arrays to 10 each.
		at_least "$name: edges" "$(awk '$1 == "edges" { print $2 }' "$work/snapshot")" 50999
		same "$name: edges to what is no node" "$(awk '$1 == "dangling" { print $2 }' "$work/snapshot")" 0
		same "$name: lost" "$(awk '$1 == "lost" { print $2 }' "$work/snapshot")" 0
		theirs=$(awk '$1 == "nodes" { print $2 }' "$work/snapshot")
		[ $ours != 0 ] || ours=$theirs
		echo "$name: $(awk '$1 == "nodes" || $1 == "edges" || $1 == "pairs" || $1 == "stack" { printf "%s %s, ", $2, $1 }' "$work/snapshot")"
	done

	# A snapshot with the runtime's own collector differs by the allocations of the session.
	same ".NET $version: nodes within 1 % of the runtime's own collector" $(((ours - theirs) * 100 / theirs)) 0

	rm -f "$work/core"
	DOTNET_DbgEnableMiniDump=1 DOTNET_DbgMiniDumpType=2 DOTNET_DbgMiniDumpName="$work/core" DOTNET_GCName=libspoorgc.so \
		timeout 100 "$suite/Suite" crash >"$work/out" 2>&1 && wrong ".NET $version: an unhandled exception did not end the program"
	if [ -e "$work/core" ]; then
		size=$(stat -c %s "$work/core")
		at_least ".NET $version: bytes of the dump" "$size" 1000000
		[ "$size" -lt 1073741824 ] || wrong ".NET $version: a dump of $size bytes"
		echo ".NET $version: a dump of $((size >> 20)) MB"
	elif grep -qiE 'ptrace|not permitted' "$work/out"; then
		echo "note: createdump may not attach here: $(grep -iE 'ptrace|permitted' "$work/out" | head -n 1)"
	else
		wrong ".NET $version: no dump: $(tail -n 3 "$work/out")"
	fi
	rm -f "$work/core"
done
end
