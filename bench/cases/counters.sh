# reading counters: CPU and memory, every second, ten times a second, ten processes at the same time: --rounds N (3), --seconds S (20)
rounds=3 seconds=20
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "counters takes --rounds and --seconds" ;;
	esac
	shift 2
done
need dotnet
build
# The peer, if available: DOTNET_COUNTERS names it, or it is downloaded once.
peer=${DOTNET_COUNTERS:-$out/tools/dotnet-counters}
[ -x "$peer" ] || dotnet tool install dotnet-counters --tool-path "$out/tools" >"$out/tools.log" 2>&1 || peer=
program=$out/managed/bin/managed/release/Managed.dll
[ "$program" -nt tests/feature/programs/managed/Program.cs ] ||
	dotnet build tests/feature/programs/managed -c Release --artifacts-path "$out/managed" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$out/managed.log" 2>&1 ||
	die "tests/feature/programs/managed could not be built: $out/managed.log"
rm -f "$out"/counters-*.cost
many=()
for i in $(seq 10); do
	start dotnet "$program" meters $((seconds * rounds * 8000 + 60000)) >/dev/null
	[ "$i" != 1 ] || target=$last
	many+=(-p "$last")
done
sleep 3
lists='System.Runtime,Shop.Orders,Shop-Counters'
for _ in $(seq "$rounds"); do
	cost counters-spoor "$spoor" counters -q -p "$target" --counters "$lists" --duration "${seconds}s" --csv -o "$out/counters.csv"
	cost counters-often "$spoor" counters -q -p "$target" --counters "$lists" --refresh-interval 100ms --duration "${seconds}s" --csv -o "$out/often.csv"
	cost counters-ten "$spoor" counters -q "${many[@]}" --counters "$lists" --duration "${seconds}s" --csv -o "$out/ten.csv"
	[ -z "$peer" ] || cost counters-peer "$peer" collect -p "$target" --counters "$lists" --format csv -o "$out/peer.csv" \
		--duration "$(printf '00:00:%02d:%02d' $((seconds / 60)) $((seconds % 60)))"
done
for name in spoor often ten peer; do
	[ ! -e "$out/counters-$name.cost" ] || show "counters-$name"
done
echo "rows: $(wc -l <"$out/counters.csv") every second, $(wc -l <"$out/often.csv") ten times a second, $(wc -l <"$out/ten.csv") of ten processes"
if [ -n "$peer" ]; then
	ratio counters-cpu-seconds "$(column counters-spoor 1)" "$(column counters-peer 1)"
	ratio counters-kib "$(column counters-spoor 3)" "$(column counters-peer 3)"
else
	echo "no dotnet-counters here to compare with: DOTNET_COUNTERS names one"
fi
