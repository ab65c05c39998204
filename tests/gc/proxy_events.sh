#!/bin/sh
# Known and dynamic events through the proxy, in a session of Microsoft's client read by TraceEvent: each start has its end, each pause's events are inside of their collection, C
# (trace/gc_dynamic) and C# (tests/gc/watch) read the same values from each dynamic event, and no event is lost.
. "$(dirname "$0")/prelude"
watcher

# judge NAME: checks the facts of $work/facts.
judge() {
	whole "$1"
	at_least "$1: collections" "$(fact gcs)" 10
	for name in SpoorGCPause SpoorGCAllocContexts SpoorGCHandles; do
		at_least "$1: $name" "$(fact "dynamic $name")" $(($(fact gc_starts) - 1))
	done
	at_least "$1: dynamic events to compare" "$(wc -l <"$work/theirs")" 30
	# Expected values: 200 pinned handles are created and destroyed; roots and contexts exist; a pause has its phases.
	awk -v name="$1" '
		{ for (i = 3; i <= NF; i++) { split($i, f, "="); v[f[1]] = f[2] } }
		$2 == "SpoorGCHandles" { split(v["Live"], live, /[][,]/); split(v["Created"], made, /[][,]/); if (live[5] > 4000) bad = "pinned handles " live[5]; if (made[5] >= 200) pinned++ }
		$2 == "SpoorGCAllocContexts" { refills += v["Refills"]; contexts += v["Contexts"]; large += v["LargeObjects"]; if (v["UnusedBytes"] > 1e9) bad = "unused bytes of contexts: " v["UnusedBytes"] }
		$2 == "SpoorGCRoots" { roots += v["Roots"] }
		$2 == "SpoorGCPause" {
			sum = v["SuspendNs"] + v["PrepareNs"] + v["RootsNs"] + v["MarkNs"] + v["ReclaimNs"] + v["FinishNs"]
			if (sum != v["PauseNs"]) bad = "phases of " sum " ns in a pause of " v["PauseNs"]
			trigger[v["Trigger"]]++
			if (v["Trigger"] == 1 && v["TriggerThread"] && !v["TriggerBytes"]) bad = "an allocation without its size"
			if (v["Trigger"] && !v["TriggerThread"] && v["Trigger"] != 6) nobody++
			pauses++
			if (v["Reason"] == 255 && !v["Background"]) unknown++
		}
		END {
			# With server GC another thread collects than the one that requests it; of two requests at the same time one may be hidden.
			if (!bad && nobody * 5 > pauses) bad = nobody " of " pauses " triggers without their thread"
			if (!bad && unknown > 1) bad = unknown " blocking pauses without a reason"
			if (!bad && !(pinned && refills && contexts && large)) bad = "pinned " pinned ", refills " refills ", contexts " contexts ", large " large
			if (!bad && !(trigger[4] && trigger[1] + trigger[2])) bad = "triggers: induced " trigger[4] + 0 ", allocation " trigger[1] + 0 ", large " trigger[2] + 0
			if (bad) { print name ": " bad; exit 1 }
		}' "$work/theirs" >"$work/said" || wrong "$(cat "$work/said")"
}

for version in $SPOOR_GC_VERSIONS; do
	target "$version"
	for settings in DOTNET_gcServer=0 DOTNET_gcServer=1; do
		rm -f "$work"/ready "$work"/*.nettrace
		start "$work/out" env $settings DOTNET_GCName=libspoorgcproxy.so "$target/Target" churn 60 "$work/ready"
		await "$work/ready"
		dotnet "$watch" record "$last" "$work/a.nettrace" 3 3:5 1:5
		rm "$work/ready"
		wait "$last" || wrong ".NET $version, $settings: $(cat "$work/out")"
		facts "$work/a.nettrace"
		judge ".NET $version, $settings"
		at_least ".NET $version: SpoorGCRoots" "$(fact 'dynamic SpoorGCRoots')" 5
		at_least ".NET $version: ticks" "$(fact 'event GC/AllocationTick')" 10
		at_least ".NET $version: handle events" "$(fact 'event GC/SetGCHandle')" 100
	done
done

# dotnet-trace itself, if NuGet has it: it shows both kinds of events, and ends normally.
if trace=$("$top/scripts/test-programs" dotnet-trace); then
	target "${SPOOR_GC_VERSIONS%% *}"
	rm -f "$work/ready"
	start "$work/out" env DOTNET_GCName=libspoorgcproxy.so "$target/Target" churn 60 "$work/ready"
	await "$work/ready"
	"$trace" collect -p "$last" --duration 00:00:00:03 -o "$work/trace.nettrace" \
		--providers Microsoft-Windows-DotNETRuntime:0x1:5 >"$work/trace.log" 2>&1 || wrong "dotnet-trace: $(tail -n 3 "$work/trace.log")"
	rm "$work/ready"
	wait "$last" || wrong "under dotnet-trace: $(cat "$work/out")"
	facts "$work/trace.nettrace"
	judge "dotnet-trace"
else
	echo "note: $trace; the sessions above are of the same client library"
fi
end
