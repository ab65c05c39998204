# a heap snapshot of ten million objects: pause, the target's memory, spoor's memory for each object: --rounds N (3), --objects N (10000000)
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
need jq
build
peer=${DOTNET_GCDUMP:-$out/tools/dotnet-gcdump}
[ -x "$peer" ] || dotnet tool install dotnet-gcdump --tool-path "$out/tools" >"$out/tools.log" 2>&1 || peer=
program=$out/managed/bin/managed/release/Managed.dll
[ "$program" -nt tests/feature/programs/managed/Program.cs ] ||
	dotnet build tests/feature/programs/managed -c Release --artifacts-path "$out/managed" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$out/managed.log" 2>&1 ||
	die "tests/feature/programs/managed could not be built: $out/managed.log"
rm -f "$out"/heap-*.cost "$out"/heap-*.seen "$out/orders"

# status KEY: prints a value of /proc/PID/status of the target, in KiB.
status() {
	awk -v word="$1:" '$1 == word { print $2 }' "/proc/$target/status"
}

# Every order is an object, and every second order has a note and its text: two objects an order on average. The program then waits at the pipe.
mkfifo "$out/orders"
sleep 100000 >"$out/orders" & # a pipe opens when both ends have been opened
started+=("$!")
: >"$out/heap.out"
ORDERS=$out/orders start dotnet "$program" heap $((objects / 2)) >"$out/heap.out"
target=$last
until grep -q ready "$out/heap.out"; do
	kill -0 "$target" 2>/dev/null || die "the program with the heap has ended: not enough memory for $objects objects?"
	sleep 0.2
done

# snapshot NAME COMMAND...: takes a snapshot and appends its cost, and the growth of the target in KiB. A failed or incomplete one is not counted.
snapshot() {
	local name=$1 before
	shift
	echo 5 >"/proc/$target/clear_refs" # VmHWM counts from here
	before=$(status VmRSS)
	rm -f "$out/cost"
	if "$out/cputime" "$out/cost" "$@" >"$out/heap-$name.log" 2>&1; then
		cat "$out/cost" >>"$out/heap-$name.cost"
		echo $(($(status VmHWM) - before)) >>"$out/heap-$name.seen"
	fi
}

# ours NAME [OPTION...]: takes a snapshot with spoor, and appends the values that it prints.
ours() {
	local name=$1
	shift
	rm -f "$out/heap.gcdump"
	snapshot "$name" "$spoor" heap --yes -p "$target" -o "$out/heap.gcdump" --json --top 1 "$@"
	grep '^{' "$out/heap-$name.log" | jq -r '"\(.whole) \(.objects) \(.stream_bytes) \(.pause_ns) \(.took_ns) \(.missing)"' >"$out/heap-$name.last"
	cat "$out/heap-$name.last" >>"$out/heap-$name.facts"
	awk -v name="$name" -v load="$(cut -d' ' -f1 /proc/loadavg)" '{ printf "%-6s %s, %d objects, stream %.0f MB, the program stood still %.2f s of %.2f s (load %s) %s\n", name, $1 == "true" ? "whole" : "NOT WHOLE", $2, $3 / 1e6, $4 / 1e9, $5 / 1e9, load,
		$1 == "true" ? "" : substr($0, index($0, $6)) }' "$out/heap-$name.last"
}

# say NAME: prints the results of the complete snapshots.
say() {
	[ -s "$out/heap-$1.cost" ] || { echo "$1: none was whole" && return; }
	show "heap-$1"
	awk '$1 == "true"' "$out/heap-$1.facts" | sort -g -k4,4 | awk -v name="$1" -v all="$(wc -l <"$out/heap-$1.facts")" -v kib="$(column "heap-$1" 3)" \
		-v grown="$(sort -g "$out/heap-$1.seen" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')" '
		{ pause[NR] = $4; objects = $2 }
		END { printf "%s: %d of %d whole; pause %.2f s (%.2f to %.2f); the target grew by %.0f MiB; our memory %.1f bytes an object\n", name, NR, all,
			pause[int((NR + 1) / 2)] / 1e9, pause[1] / 1e9, pause[NR] / 1e9, grown / 1024, kib * 1024 / objects }'
}

rm -f "$out"/heap-*.facts
for _ in $(seq "$rounds"); do
	ours spoor
	ours large --buffersize 1024
	if [ -n "$peer" ]; then
		rm -f "$out/peer.gcdump"
		snapshot peer "$peer" collect -p "$target" -o "$out/peer.gcdump"
	fi
done
say spoor
say large
if [ -n "$peer" ]; then
	show heap-peer
	ratio heap-cpu-seconds "$(column heap-spoor 1)" "$(column heap-peer 1)"
	ratio heap-kib "$(column heap-spoor 3)" "$(column heap-peer 3)"
	ratio heap-target-growth-kib "$(sort -g "$out/heap-spoor.seen" | sed -n "$((rounds / 2 + 1))p")" "$(sort -g "$out/heap-peer.seen" | sed -n "$((rounds / 2 + 1))p")"
else
	echo "no dotnet-gcdump here to compare with: DOTNET_GCDUMP names one"
fi
