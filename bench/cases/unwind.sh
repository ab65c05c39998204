# unwinding stacks of 48 frames without frame pointers: --rounds N (5), --seconds S (3), --rate HZ (999)
rounds=5 seconds=3 rate=999
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	*) die "unwind takes --rounds, --seconds and --rate" ;;
	esac
	shift 2
done
build tall unwinding
rm -f "$out"/unwind-*.cost "$out/unwind-walk"
start "$out/tall" 3600 >"$out/unwind.pid"
tall=$last
sleep 0.5
for _ in $(seq "$rounds"); do
	"$out/unwinding" "$tall" "$seconds" "$rate" >>"$out/unwind-walk"
	cost unwind-spoor-no-names "$spoor" record -p "$tall" -F "$rate" --call-graph dwarf --no-symbols --no-dotnet --duration "${seconds}s" -o "$out/unwind.nettrace"
	cost unwind-perf-B-N "$perf" record -p "$tall" --call-graph dwarf,16384 -B -N -F "$rate" -o "$out/unwind.data" -- sleep "$seconds"
	cost unwind-spoor "$spoor" record -p "$tall" -F "$rate" --call-graph dwarf --no-dotnet --duration "${seconds}s" -o "$out/unwind.nettrace"
	cost unwind-perf "$perf" record -p "$tall" --call-graph dwarf,16384 -F "$rate" -o "$out/unwind.data" -- sleep "$seconds"
	cost unwind-spoor-fp "$spoor" record -p "$tall" -F "$rate" --call-graph fp --no-symbols --no-dotnet --duration "${seconds}s" -o "$out/unwind-fp.nettrace"
done
stop "$tall"
for name in spoor-no-names perf-B-N spoor perf spoor-fp; do
	show "unwind-$name"
done
tail -n 4 "$out/unwind-spoor.log"
awk '{ printf "walk: %s ns a frame, %s ns a sample, %s frames, %s %% to the start, %s samples\n", $1, $2, $3, $4, $5 }' "$out/unwind-walk"
ls -l "$out/unwind.nettrace" "$out/unwind.data" | awk '{ print $9, $5, "bytes" }'
rm -f "$out/unwind.nettrace" "$out/unwind-fp.nettrace" "$out/unwind.data"
ratio unwind-ns-a-frame "$(median_of "$out/unwind-walk" 1)" 50
ratio_more unwind-to-start-percent "$(median_of "$out/unwind-walk" 4)" 99
ratio unwind-no-names-cpu-s "$(column unwind-spoor-no-names 1)" "$(column unwind-perf-B-N 1)"
ratio unwind-names-cpu-s "$(column unwind-spoor 1)" "$(column unwind-perf 1)"
