# the recorder's CPU for each switch between threads, with stacks, beside perf record -e sched:sched_switch -g: --rounds N (5), --seconds S (4)
rounds=5 seconds=4
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "offcpu takes --rounds and --seconds" ;;
	esac
	shift 2
done
build
rm -f "$out"/offcpu-*
# perf reads tracefs at its usual place. A mount in a new namespace is gone when that ends.
with_tracefs=()
[ -e /sys/kernel/tracing/events ] || with_tracefs=(unshare -m sh -c 'mount -t tracefs nodev /sys/kernel/tracing && exec "$@"' sh)

# Two processes that only switch, until the end of the benchmark.
start bash -c 'while :; do "$0" bench sched pipe -l 200000 >/dev/null 2>&1; done' "$perf"
sleep 1

# per_switch NAME COUNT LOST: appends the microseconds of CPU for each of COUNT switches, and the share that was lost.
per_switch() {
	tail -n 1 "$out/offcpu-$1.cost" | awk -v count="$2" -v lost="$3" '{ printf "%.4f %.4f %.0f\n", count ? $1 * 1e6 / count : 0, count + lost ? 100 * lost / (count + lost) : 0, count }' >>"$out/offcpu-$1.us"
}

ours() {
	local name=$1
	shift
	cost "offcpu-$name" "$spoor" record -a --off-cpu "$@" --no-dotnet --duration "${seconds}s" -o "$out/offcpu.nettrace"
	"$spoor" events "$out/offcpu.nettrace" --event SessionEnd --json >"$out/offcpu.end"
	per_switch "$name" "$(jq '.fields | .Count[.CountName | index("blocks")]' "$out/offcpu.end")" \
		"$(sed -n 's/.*, \([0-9,]*\) lost.*/\1/p' "$out/offcpu-$name.log" | tr -d , | head -n 1)"
}

theirs() {
	cost offcpu-perf "${with_tracefs[@]}" "$perf" record -a -q -e sched:sched_switch -g -B -N -o "$out/offcpu.data" -- sleep "$seconds"
	"$perf" report --stats -i "$out/offcpu.data" 2>/dev/null >"$out/offcpu.stats" || :
	per_switch perf "$(awk '$1 == "SAMPLE" && $2 == "events:" { print $3; exit }' "$out/offcpu.stats")" "$(awk '/LOST_SAMPLES|LOST events/ { n += $3 } END { print n + 0 }' "$out/offcpu.stats")"
}

for _ in $(seq "$rounds"); do
	ours spoor --no-symbols
	theirs
	ours names
	ours min --no-symbols --min-block 1ms
done
for name in spoor names min perf; do
	echo "$name: $(median_of "$out/offcpu-$name.us") us of CPU a switch ($(range_of "$out/offcpu-$name.us")), $(median_of "$out/offcpu-$name.us" 2) % lost, $(median_of "$out/offcpu-$name.us" 3) switches in $seconds s"
done
rm -f "$out/offcpu.data" "$out/offcpu.nettrace" "$out/offcpu.nettrace.old"
ratio offcpu-us "$(median_of "$out/offcpu-spoor.us")" "$(median_of "$out/offcpu-perf.us")"
ratio offcpu-us-names "$(median_of "$out/offcpu-names.us")" "$(median_of "$out/offcpu-perf.us")"
ratio offcpu-us-min-block "$(median_of "$out/offcpu-min.us")" "$(median_of "$out/offcpu-perf.us")"
