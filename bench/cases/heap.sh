# a heap snapshot of ten million objects: pause, the target's memory, ours an object: --rounds N (3), --objects N (10000000)
rounds=3 objects=10000000
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--objects) objects=$2 ;;
	*) die "heap takes --rounds and --objects" ;;
	esac
	shift 2
done
need dotnet
build
peer=${DOTNET_GCDUMP:-$out/tools/dotnet-gcdump}
[ -x "$peer" ] || dotnet tool install dotnet-gcdump --tool-path "$out/tools" >"$out/tools.log" 2>&1 || peer=
program=$out/managed/bin/managed/release/Managed.dll
[ "$program" -nt tests/kernel/managed/Program.cs ] ||
	dotnet build tests/kernel/managed -c Release --artifacts-path "$out/managed" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$out/managed.log" 2>&1 ||
	die "tests/kernel/managed could not be built: $out/managed.log"
rm -f "$out"/heap-*.cost "$out"/heap-*.seen "$out/orders"

# status WORD: KiB of the target.
status() {
	awk -v word="$1:" '$1 == word { print $2 }' "/proc/$target/status"
}

# Every order is an object, and every second one has a note with its text: two objects an order. The program waits at the pipe.
mkfifo "$out/orders"
start sleep 100000 >"$out/orders"
: >"$out/heap.out"
ORDERS=$out/orders start dotnet "$program" heap $((objects / 2)) >"$out/heap.out"
target=$last
until grep -q ready "$out/heap.out"; do
	kill -0 "$target" 2>/dev/null || die "the program with the heap has ended: not enough memory for $objects objects?"
	sleep 0.2
done

# snapshot NAME COMMAND...: its cost, and a line "growth-KiB" of the target.
snapshot() {
	local name=$1 before
	shift
	echo 5 >"/proc/$target/clear_refs" # VmHWM counts from here
	before=$(status VmRSS)
	cost "heap-$name" "$@"
	echo $(($(status VmHWM) - before)) >>"$out/heap-$name.seen"
}

for _ in $(seq "$rounds"); do
	rm -f "$out/heap.gcdump"
	snapshot spoor "$spoor" heap --yes -p "$target" -o "$out/heap.gcdump" --json --top 1
	tr ',{' '\n\n' <"$out/heap-spoor.log" | sed -n 's/^"\(pause_ns\|took_ns\|stream_bytes\|objects\|count\|whole\)":\([a-z0-9]*\)$/\1 \2/p' | awk '!seen[$1]++' >"$out/heap-spoor.facts"
	echo "snapshot: $(tr '\n' ' ' <"$out/heap-spoor.facts") target grows by $(tail -n 1 "$out/heap-spoor.seen") KiB, file $(stat -c %s "$out/heap.gcdump") bytes"
	if [ -n "$peer" ]; then
		rm -f "$out/peer.gcdump"
		snapshot peer "$peer" collect -p "$target" -o "$out/peer.gcdump"
	fi
done
show heap-spoor
seen=$(awk '$1 == "objects" { print $2 }' "$out/heap-spoor.facts")
awk -v kib="$(column heap-spoor 3)" -v n="${seen:-$objects}" 'BEGIN { printf "our memory: %.1f bytes an object (%d objects)\n", kib * 1024 / n, n }'
if [ -n "$peer" ]; then
	show heap-peer
	ratio heap-cpu-seconds "$(column heap-spoor 1)" "$(column heap-peer 1)"
	ratio heap-kib "$(column heap-spoor 3)" "$(column heap-peer 3)"
	ratio heap-target-growth-kib "$(sort -g "$out/heap-spoor.seen" | sed -n "$((rounds / 2 + 1))p")" "$(sort -g "$out/heap-peer.seen" | sed -n "$((rounds / 2 + 1))p")"
else
	echo "no dotnet-gcdump here to compare with: DOTNET_GCDUMP names one"
fi
