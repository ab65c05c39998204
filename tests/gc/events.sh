#!/bin/sh
# Events of both libraries in any session: known and dynamic events that TraceEvent reads as whole collections; two sessions at a time, each with its own events; and a session
# that starts before the first managed instruction and has the first collection.
. "$(dirname "$0")/prelude"
watcher

for version in $SPOOR_GC_VERSIONS; do
	target "$version"
	for library in $libraries; do
		[ -e "$target/$library" ] || continue
		name=".NET $version, $library"
		rm -f "$work"/ready "$work"/*.nettrace
		start "$work/out" env DOTNET_GCName="$library" "$target/Target" churn 60 "$work/ready"
		await "$work/ready"
		dotnet "$watch" record "$last" "$work/a.nettrace" 2 3:5 1:5
		facts "$work/a.nettrace"
		whole "$name"
		at_least "$name: dynamic events of ours" "$(grep -c '^line ' "$work/facts")" 5
		for event in Start Stop HeapStats Triggered MarkWithType GlobalHeapHistory AllocationTick PinObjectAtGCTime SuspendEEStart RestartEEStop; do
			at_least "$name: $event" "$(fact "event GC/$event")" 1
		done
		# Two sessions at a time; then none.
		dotnet "$watch" sessions "$last" "$work/one.nettrace" "$work/two.nettrace"
		rm "$work/ready"
		wait "$last" || wrong "$name: $(cat "$work/out")"
		for session in one two; do
			facts "$work/$session.nettrace"
			whole "$name, session $session"
			at_least "$name, session $session: collections" "$(fact gcs)" 5
		done
		at_least "$name: ticks in the verbose session" "$(fact 'event GC/AllocationTick')" 1
		facts "$work/one.nettrace"
		same "$name: ticks in the session of level 4" "$(fact 'event GC/AllocationTick')" 0

		rm -f "$work/first.nettrace"
		DOTNET_EnableEventPipe=1 DOTNET_EventPipeOutputPath="$work/first.nettrace" DOTNET_EventPipeConfig=Microsoft-Windows-DotNETRuntime:1:4 \
			DOTNET_GCName="$library" timeout 60 "$target/Target" collect 3 >"$work/out" 2>&1 || wrong "$name from the start: $(cat "$work/out")"
		facts "$work/first.nettrace"
		whole "$name from the start"
		same "$name from the start: the first collection" "$(fact first_gc)" 1
		same "$name from the start: collections the program counted" "$(fact gc_starts)" "$(awk '$1 == "ok" { print $2 }' "$work/out")"
		at_least "$name from the start: dynamic events of ours" "$(grep -c '^line ' "$work/facts")" "$(fact gc_starts)"
	done
done
end
