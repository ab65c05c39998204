#!/bin/sh
# The proxy under .NET 10, 9 and 8, with the settings that change how a collector works: the program finds all its objects intact, and the log without a
# session has each pause.
. "$(dirname "$0")/prelude"

# churn NAME SECONDS VARIABLE=VALUE...
churn() {
	name=$1
	seconds=$2
	shift 2
	rm -f "$work/log"
	if ! env "$@" SPOOR_GC_LOG="$work/log" timeout 120 "$target/Target" churn "$seconds" >"$work/out" 2>&1; then
		wrong "$name: $(tail -n 3 "$work/out" | tr '\n' ' ')"
		return
	fi
	grep -q '^ok ' "$work/out" || wrong "$name: $(cat "$work/out")"
	[ -e "$work/log" ] || {
		wrong "$name: no log"
		return
	}
	# The phases add up, and the log has as many collections as the program counted.
	awk -v name="$name" -v counted="$(awk '{ print $2 }' "$work/out")" '
		/^#/ { next }
		NF != 32 { print name ": a line of " NF " words: " $0; exit 1 }
		{
			sum = $9 + $10 + $11 + $12 + $13 + $14 + $15 - $9
			if (sum > $9 + 0.5 || sum < $9 - 0.5) { print name ": phases of " sum " us in a pause of " $9; exit 1 }
			if ($5 == "blocking" && !(($4) in seen)) generations++
			seen[$4] = 1; if ($3 > last) last = $3; pauses++
			if ($27 < 200) { few++ }
			trigger[$6]++
		}
		END {
			if (pauses < 3) { print name ": " pauses " pauses in the log"; exit 1 }
			if (last < counted - 1 || last > counted + 1) { print name ": the last collection of the log is " last ", of the program " counted; exit 1 }
			# Slow machines have few collections: with server GC perhaps none that an allocation began.
			if (!trigger["induced"] || (pauses > 30 && !(trigger["allocation"] + trigger["large"]))) { print name ": no pause was induced, or none came from allocations"; exit 1 }
		}' "$work/log" >"$work/said" || wrong "$(cat "$work/said")"
	grep -q '^# process [0-9]* end: .* pauses' "$work/log" || wrong "$name: no last line"
}

for version in $SPOOR_GC_VERSIONS; do
	target "$version"
	proxy="DOTNET_GCName=libspoorgcproxy.so"
	churn ".NET $version" 2 $proxy
	churn ".NET $version, no tiering" 1 $proxy DOTNET_TieredCompilation=0
	churn ".NET $version, server GC" 2 $proxy DOTNET_gcServer=1
	churn ".NET $version, each 1 MB" 1 $proxy DOTNET_GCgen0size=0x100000
	churn ".NET $version, not concurrent" 1 $proxy DOTNET_gcConcurrent=0
	churn ".NET $version, conserving memory" 1 $proxy DOTNET_GCConserveMemory=7
	[ ! -e "$target/libclrgcexp.so" ] || churn ".NET $version, over libclrgcexp" 2 $proxy SPOOR_GC_COLLECTOR=libclrgcexp.so
	[ "$version" = 8 ] || churn ".NET $version, by GCPath" 1 DOTNET_GCPath="$build/gc/libspoorgcproxy.so"
done
end
