# tracing, compared with dotnet-trace: --rounds N (3), --seconds S (10), --rate EVENTS (100000); --processes N at the same time, spoor alone, with that rate in each
rounds=3 seconds=10 rate=100000 processes=
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	--processes) processes=$2 ;;
	*) die "trace takes --rounds, --seconds, --rate and --processes" ;;
	esac
	shift 2
done
need dotnet
build opening
flood=$out/flood/bin/flood/release/Flood.dll
[ "$flood" -nt bench/flood/Flood.cs ] ||
	dotnet build bench/flood -c Release --artifacts-path "$out/flood" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$out/flood.log" 2>&1 ||
	die "bench/flood could not be built: $out/flood.log"

# Many processes into one file: the cost of the tracer from its start to the end of the rundown.
if [ -n "$processes" ]; then
	rm -f "$out"/trace-many.cost "$out"/flood-*.out
	targets=
	for i in $(seq "$processes"); do
		start dotnet "$flood" "$rate" 100000 1 >"$out/flood-$i.out"
		targets=$targets,$last
	done
	until [ "$(cat "$out"/flood-*.out | grep -c ready)" -ge "$processes" ]; do sleep 0.1; done
	sleep 3
	for _ in $(seq "$rounds"); do
		cost trace-many "$spoor" trace -p "${targets#,}" --providers 'Bench-Flood:0xFFFFFFFFFFFFFFFF:5,Microsoft-Windows-DotNETRuntime:0x1:4' --duration "${seconds}s" \
			-o "$out/many.nettrace"
		grep -h 'events of' "$out/trace-many.log"
	done
	show trace-many
	rm -f "$out/many.nettrace" "$out"/flood-*.out
	ratio trace-many-kib "$(column trace-many 3)" 10240
	exit 0
fi

# The peer: DOTNET_TRACE names it, or it is downloaded once.
peer=${DOTNET_TRACE:-$out/tools/dotnet-trace}
[ -x "$peer" ] || dotnet tool install dotnet-trace --tool-path "$out/tools" >"$out/tools.log" 2>&1 || die "no dotnet-trace: $out/tools.log"
rm -f "$out"/trace-*.cost "$out"/opening-*

# Time from exec to the request for a session.
for _ in $(seq 15); do
	"$out/opening" "$spoor" trace -q -p PID -o "$out/opening.nettrace" >>"$out/opening-spoor"
	"$out/opening" "$spoor" trace -q --raw -p PID -o "$out/opening.nettrace" >>"$out/opening-raw"
done
for _ in $(seq 5); do
	"$out/opening" "$peer" collect -p PID -o "$out/opening.nettrace" >>"$out/opening-peer"
done
for name in spoor raw peer; do
	echo "opening-$name: $(median_of "$out/opening-$name") ms ($(range_of "$out/opening-$name"))"
done

# One stream and three readers at the same time: only the readers differ.
span=$(printf '00:00:%02d:%02d' $((seconds / 60)) $((seconds % 60)))
providers='Bench-Flood:0xFFFFFFFFFFFFFFFF:5,Microsoft-Windows-DotNETRuntime:0x1:4'
for _ in $(seq "$rounds"); do
	start dotnet "$flood" "$rate" $((seconds + 8)) >"$out/flood.out"
	target=$last
	until grep -q ready "$out/flood.out"; do sleep 0.1; done
	sleep 1
	# cost() takes one command at a time.
	"$out/cputime" "$out/trace-peer.cost" "$peer" collect -p "$target" --providers "$providers" --duration "$span" -o "$out/peer.nettrace" \
		>"$out/trace-peer.log" 2>&1 </dev/null &
	first=$!
	"$out/cputime" "$out/trace-raw.cost" "$spoor" trace -q -p "$target" --providers "$providers" --duration "${seconds}s" --raw -o "$out/raw.nettrace" &
	second=$!
	cost trace-spoor "$spoor" trace -p "$target" --providers "$providers" --duration "${seconds}s" -o "$out/spoor.nettrace"
	wait $first $second
	stop "$target"
done
for name in spoor raw peer; do
	show "trace-$name"
done
grep -h 'events of' "$out/trace-spoor.log"
size_peer=$(stat -c %s "$out/peer.nettrace") size_raw=$(stat -c %s "$out/raw.nettrace") size_spoor=$(stat -c %s "$out/spoor.nettrace")
echo "bytes: spoor $size_spoor, raw $size_raw, peer $size_peer"
rm -f "$out"/*.nettrace
ratio trace-opening-ms "$(median_of "$out/opening-spoor")" "$(median_of "$out/opening-peer")"
ratio trace-cpu-s "$(column trace-spoor 1)" "$(column trace-peer 1)"
ratio trace-raw-cpu-s "$(column trace-raw 1)" "$(column trace-peer 1)"
# On a busy machine each receives a different number of events, so the cost for each byte written is printed too (of the last round).
per_mb() { awk -v cpu="$(column "trace-$1" 1)" -v bytes="$2" 'BEGIN { printf "%.6g", bytes ? cpu * 1e9 / bytes : 0 }'; }
ratio trace-cpu-ms-a-mb "$(per_mb spoor "$size_spoor")" "$(per_mb peer "$size_peer")"
ratio trace-raw-cpu-ms-a-mb "$(per_mb raw "$size_raw")" "$(per_mb peer "$size_peer")"
ratio trace-memory-kib "$(column trace-spoor 3)" "$(column trace-peer 3)"
ratio trace-raw-memory-kib "$(column trace-raw 3)" "$(column trace-peer 3)"
