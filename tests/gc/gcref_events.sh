#!/bin/sh
# Events of the reference collector, in sessions of Microsoft's client read by TraceEvent: every collection is complete, from the first one on, and no event is lost; its dynamic
# events are inside of their collections, and their numbers are consistent.
. "$(dirname "$0")/prelude"
watcher

# judge NAME: checks the facts of $work/facts.
judge() {
	same "$1: events lost" "$(fact lost)" 0
	at_least "$1: collections" "$(fact gcs)" 10
	same "$1: collections without their end" "$(fact gcs_unpaired)" 0
	at_least "$1: ends" "$(fact gc_ends)" $(($(fact gc_starts) - 1))
	# The session may begin or end within one.
	[ "$(fact gcs_incomplete)" -le 1 ] || wrong "$1: $(fact gcs_incomplete) collections that TraceEvent finds incomplete"
	least=$(($(fact gc_starts) - 1))
	for event in GC/HeapStats GC/GlobalHeapHistory GC/Triggered; do
		at_least "$1: $event" "$(fact "event $event")" $least
	done
	at_least "$1: GC/MarkWithType" "$(fact 'event GC/MarkWithType')" $((3 * least))
	for event in SpoorMarkAndSweep SpoorHeapRegions; do
		at_least "$1: $event" "$(fact "dynamic $event")" $least
	done
	same "$1: dynamic events that the list does not explain" "$(fact undecoded)" 0
	[ "$(fact dynamic_outside)" -le 2 ] || wrong "$1: $(fact dynamic_outside) dynamic events outside of any collection"
	awk -v name="$1" '
		/^line / { for (i = 3; i <= NF; i++) { split($i, f, "="); v[f[1]] = f[2] } }
		/^line SpoorMarkAndSweep/ {
			n++
			if (v["MarkedObjects"] * 24 > v["MarkedBytes"]) bad = v["MarkedObjects"] " objects in " v["MarkedBytes"] " bytes"
			if (v["MarkedObjects"] < 1000) bad = "only " v["MarkedObjects"] " objects marked"
			if (v["StoppedNs"] < 1000 || v["StoppedNs"] > 60e9) bad = "stopped for " v["StoppedNs"] " ns"
			swept += v["RegionsSweptLazily"] + v["RegionsSweptInPause"]; runs += v["FreeRuns"]; free += v["FreeBytes"]
		}
		/^line SpoorHeapRegions/ {
			used = v["SmallRegions"] + v["MediumRegions"] + v["LargeRegions"] + v["PinnedRegions"] + v["HugeRegions"]
			if ((used + v["FreeRegions"]) * 1048576 != v["CommittedBytes"]) bad = used " + " v["FreeRegions"] " regions, " v["CommittedBytes"] " bytes committed"
			if (!v["SmallRegions"] || v["BudgetBytes"] < 1) bad = "no small region, or no budget"
		}
		END {
			if (!bad && !(swept && runs && free)) bad = "swept " swept ", runs " runs ", free " free
			if (bad) { print name ": " bad; exit 1 }
		}' "$work/facts" >"$work/said" || wrong "$(cat "$work/said")"
}

for version in $SPOOR_GC_VERSIONS; do
	target "$version"
	for settings in DOTNET_gcServer=0 DOTNET_gcServer=1; do
		name=".NET $version, $settings"
		rm -f "$work"/ready "$work"/*.nettrace
		start "$work/out" env $settings DOTNET_GCName=libspoorgc.so "$target/Target" churn 60 "$work/ready"
		await "$work/ready"
		dotnet "$watch" record "$last" "$work/a.nettrace" 3 3:5 1:5
		rm "$work/ready"
		wait "$last" || wrong "$name: $(cat "$work/out")"
		dotnet "$watch" facts "$work/a.nettrace" "$top/gc/gc_events.def" >"$work/facts"
		judge "$name"
		at_least "$name: ticks" "$(fact 'event GC/AllocationTick')" 10
		at_least "$name: pinned objects" "$(fact 'event GC/PinObjectAtGCTime')" 100
		at_least "$name: handle events" "$(fact 'event GC/SetGCHandle')" 100
		echo "$name: $(fact gcs) collections, $(fact 'event GC/AllocationTick') ticks, $(fact 'event GC/PinObjectAtGCTime') pins, $(fact lost) lost"
	done

	# From the first collection on, without a tool that attaches.
	DOTNET_EnableEventPipe=1 DOTNET_EventPipeOutputPath="$work/first.nettrace" DOTNET_EventPipeConfig=Microsoft-Windows-DotNETRuntime:0x1:5 \
		DOTNET_GCName=libspoorgc.so "$target/Target" collect 20 >"$work/out" 2>&1 || wrong ".NET $version, EnableEventPipe: $(cat "$work/out")"
	dotnet "$watch" facts "$work/first.nettrace" "$top/gc/gc_events.def" >"$work/facts"
	same ".NET $version: the first collection seen" "$(fact first_gc)" 1
	same ".NET $version: collections" "$(fact gcs)" "$(awk '{ print $2 }' "$work/out")"
	same ".NET $version: lost from the first on" "$(fact lost)" 0
	same ".NET $version: incomplete from the first on" "$(fact gcs_incomplete)" 0
	at_least ".NET $version: dynamic events from the first on" "$(fact 'dynamic SpoorMarkAndSweep')" "$(fact gcs)"
done
end
