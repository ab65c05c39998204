#!/bin/sh
# Two sessions that overlap: what the proxy holds for wanted follows their union, and returns to nothing; seen in the log's last columns, pause by pause. And a session from
# before the first managed instruction: events from the very first collection.
. "$(dirname "$0")/prelude"
watcher

for version in $SPOOR_GC_VERSIONS; do
	target "$version"
	rm -f "$work"/ready "$work"/log "$work"/*.nettrace
	start "$work/out" env SPOOR_GC_LOG="$work/log" DOTNET_GCName=libspoorgcproxy.so "$target/Target" churn 60 "$work/ready"
	await "$work/ready"
	dotnet "$watch" sessions "$last" "$work/one.nettrace" "$work/two.nettrace"
	rm "$work/ready"
	wait "$last" || wrong ".NET $version: $(cat "$work/out")"
	# The GC's own keywords, each change once: 1, then 3, then nothing. A session that ended is noticed at the next collection. Others on this machine may attach to
	# any .NET process with keywords of their own: then only the level may differ.
	awk -v name=".NET $version" '
		/^#/ { next }
		{
			level = $29; digit = substr($30, length($30)); own = index("0123456789abcdef", digit) - 1
			foreign = length($30) > 3 || own > 3
			own %= 4
			if (own != before || !lines) steps = steps own " "
			before = own; lines++
			if (!foreign && level != (own == 3 ? 5 : own == 1 ? 4 : 0)) bad = "level " level " with keyword " $30
		}
		END {
			# At its end a session has the union it was part of told once more, perhaps after a collection already knew better: the next one knows again.
			if (steps !~ /^0 1 3 (0 3 )*0 $/) bad = "what was wanted, one after the other: " steps
			if (bad) { print name ": " bad; exit 1 }
		}' "$work/log" >"$work/said" || wrong "$(cat "$work/said")"
	[ -z "${KEEP:-}" ] || cp "$work/log" "$KEEP"
	for name in one two; do
		dotnet "$watch" facts "$work/$name.nettrace" "$top/gc/gc_events.def" >"$work/facts"
		same ".NET $version, session $name: lost" "$(fact lost)" 0
		at_least ".NET $version, session $name: pauses" "$(fact 'dynamic SpoorGCPause')" 10
		same ".NET $version, session $name: starts without end" "$(fact gcs_unpaired)" 0
	done
	# Level 4 hears nothing of level 5, also while the other session wants it.
	dotnet "$watch" facts "$work/one.nettrace" "$top/gc/gc_events.def" >"$work/facts"
	same ".NET $version: verbose events in the session of level 4" "$(fact 'event GC/AllocationTick')" 0

	rm -f "$work/first.nettrace"
	DOTNET_EnableEventPipe=1 DOTNET_EventPipeOutputPath="$work/first.nettrace" \
		DOTNET_EventPipeConfig=Microsoft-Windows-DotNETRuntime:1:4 DOTNET_GCName=libspoorgcproxy.so \
		timeout 60 "$target/Target" collect 3 >"$work/out" 2>&1 || wrong ".NET $version from the start: $(cat "$work/out")"
	dotnet "$watch" facts "$work/first.nettrace" "$top/gc/gc_events.def" >"$work/facts"
	same ".NET $version from the start: the first collection" "$(fact first_gc)" 1
	same ".NET $version from the start: pauses" "$(fact 'dynamic SpoorGCPause')" "$(fact gc_starts)"
	same ".NET $version from the start: collections the program counted" "$(fact gc_starts)" "$(awk '{ print $2 }' "$work/out")"
	grep '^line SpoorGCPause' "$work/facts" | head -n 1 | grep -q 'Collection=1 ' || wrong ".NET $version: the first pause is not the first collection's"
done
end
