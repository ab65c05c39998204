#!/bin/sh
# Two overlapping sessions: the proxy's status follows their union, and returns to nothing. The last columns of the log show it for each pause.
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
			# At the end of a session the runtime reports the outdated union once more, perhaps after a collection has polled the new one. The next collection
			# corrects it.
			if (steps !~ /^0 1 3 (0 3 )*0 $/) bad = "what was wanted, one after the other (or somebody else had a session, too): " steps
			if (bad) { print name ": " bad; exit 1 }
		}' "$work/log" >"$work/said" || wrong "$(cat "$work/said")"
	for name in one two; do
		facts "$work/$name.nettrace"
		whole ".NET $version, session $name"
		at_least ".NET $version, session $name: pauses" "$(fact 'dynamic SpoorGCPause')" 10
	done
	# A session at level 4 gets no events of level 5, also while the other session enables them.
	facts "$work/one.nettrace"
	same ".NET $version: verbose events in the session of level 4" "$(fact 'event GC/AllocationTick')" 0
done
end
