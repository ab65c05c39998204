#!/bin/sh
# Dynamic events of the proxy in a trace of spoor: spoor trace --print shows them live and spoor events from the file, by name and field. trace/gc_dynamic reads the same values as
# TraceEvent in the same file (gc_decode).
. "$(dirname "$0")/prelude"
. "$top/tests/json"
watcher
spoor=$build/spoor
[ -x "$spoor" ] || skip "spoor is not built"
runtime=Microsoft-Windows-DotNETRuntime

# fields FILE: the text after the provider in each line of a dynamic event, sorted.
fields() {
	sed -n "s|.* $runtime/\(Spoor[A-Za-z0-9_]*\)  |\1 |p" "$1" | sort
}

for version in $SPOOR_GC_VERSIONS; do
	target "$version"
	rm -f "$work"/ready
	start "$work/out" env DOTNET_GCName=libspoorgcproxy.so "$target/Target" churn 60 "$work/ready"
	await "$work/ready"
	"$spoor" trace -p "$last" --providers $runtime:0x1:5 --rundown false --print --duration 2s -o "$work/a.nettrace" \
		>"$work/live" 2>"$work/trace.log" || wrong ".NET $version: spoor trace: $(cat "$work/trace.log")"
	rm "$work/ready"
	wait "$last" || wrong ".NET $version: $(cat "$work/out")"
	facts "$work/a.nettrace"
	grep '^raw ' "$work/facts" | "$build/tests/gc/gc_decode" | sed -n 's/^line //p' | sort >"$work/expected"
	at_least ".NET $version: pauses to compare" "$(grep -c '^SpoorGCPause ' "$work/expected")" 3

	"$spoor" events "$work/a.nettrace" >"$work/printed" 2>"$work/events.log" || wrong ".NET $version: spoor events: $(cat "$work/events.log")"
	[ ! -s "$work/events.log" ] || wrong ".NET $version: spoor events says: $(cat "$work/events.log")"
	for way in live printed; do
		fields "$work/$way" >"$work/found"
		cmp -s "$work/found" "$work/expected" || wrong ".NET $version, $way: $(diff "$work/found" "$work/expected" | head -n 4 | cut -c1-300)"
	done
	same ".NET $version: dynamic events without their own name" "$(grep -c "$runtime/\(GC/DynamicEvent\|39\) " "$work/printed")" 0

	# Chosen by name, counted, and as JSON: the same events.
	"$spoor" events "$work/a.nettrace" --event SpoorGCPause >"$work/pauses"
	same ".NET $version: pauses chosen" "$(wc -l <"$work/pauses")" "$(grep -c '^SpoorGCPause ' "$work/expected")"
	"$spoor" events "$work/a.nettrace" --summary >"$work/summary"
	same ".NET $version: pauses counted" "$(awk '$4 == "SpoorGCPause" { print $1 }' "$work/summary" | tr -d ,)" "$(wc -l <"$work/pauses")"
	"$spoor" events "$work/a.nettrace" --event SpoorGCPause --json >"$work/json"
	value "$work/json" '"SpoorGCPause \(.fields | to_entries | map("\(.key)=\(.value)") | join(" "))"' | sort >"$work/found"
	grep '^SpoorGCPause ' "$work/expected" >"$work/wanted"
	cmp -s "$work/found" "$work/wanted" || wrong ".NET $version, JSON: $(diff "$work/found" "$work/wanted" | head -n 4 | cut -c1-300)"
done
end
