# printing the events of a file, compared with a program on TraceEvent: --rounds N (5), --seconds S (5), --rate EVENTS (100000)
rounds=5 seconds=5 rate=100000
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	*) die "events takes --rounds, --seconds and --rate" ;;
	esac
	shift 2
done
need dotnet
build
# project NAME FILE: builds a project once and sets $program to its program.
project() {
	program=$out/$1/bin/$1/release/$2.dll
	[ "$program" -nt "bench/$1/$2.cs" ] ||
		dotnet build "bench/$1" -c Release --artifacts-path "$out/$1" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$out/$1.log" 2>&1 ||
		die "bench/$1 could not be built: $out/$1.log"
}
project flood Flood
flood=$program
project printer Printer
printer=$program
rm -f "$out"/events-*.cost "$out/events.nettrace"

# Both read the same file, with the bytes that the runtime sent.
start dotnet "$flood" "$rate" $((seconds + 8)) >"$out/flood.out"
target=$last
until grep -q ready "$out/flood.out"; do sleep 0.1; done
"$spoor" trace -q --raw -p "$target" --providers 'Bench-Flood:0xFFFFFFFFFFFFFFFF:5,Microsoft-Windows-DotNETRuntime:0x1:4' --duration "${seconds}s" \
	-o "$out/events.nettrace"
stop "$target"
for _ in $(seq "$rounds"); do
	cost events-spoor sh -c "'$spoor' events '$out/events.nettrace' >'$out/events-spoor.txt'"
	cost events-json sh -c "'$spoor' events '$out/events.nettrace' --json >'$out/events-json.txt'"
	cost events-peer sh -c "dotnet '$printer' '$out/events.nettrace' >'$out/events-peer.txt'"
done
lines=$(wc -l <"$out/events-spoor.txt") peer_lines=$(wc -l <"$out/events-peer.txt")
echo "$(stat -c %s "$out/events.nettrace") bytes; lines: spoor $lines, peer $peer_lines"
for name in spoor json peer; do
	show "events-$name"
done
each() { awk -v cpu="$(column "events-$1" 1)" -v lines="$2" 'BEGIN { printf "%.4g", lines ? cpu * 1e6 / lines : 0 }'; }
ratio events-cpu-us-an-event "$(each spoor "$lines")" "$(each peer "$peer_lines")"
ratio events-json-cpu-us-an-event "$(each json "$lines")" "$(each peer "$peer_lines")"
ratio events-memory-kib "$(column events-spoor 3)" "$(column events-peer 3)"
rm -f "$out/events.nettrace" "$out"/events-*.txt
