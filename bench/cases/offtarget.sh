# what --off-cpu costs a program that only switches (perf bench sched pipe, two switches an exchange), beside perf record: --rounds N (5), --loops N (60000)
rounds=5 loops=60000
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--loops) loops=$2 ;;
	*) die "offtarget takes --rounds and --loops" ;;
	esac
	shift 2
done
build
rm -f "$out"/offtarget-*
# perf reads tracefs at its usual place. A mount in a new namespace is gone when that ends.
with_tracefs=()
[ -e /sys/kernel/tracing/events ] || with_tracefs=(unshare -m sh -c 'mount -t tracefs nodev /sys/kernel/tracing && exec "$@"' sh)

# exchanges NAME: appends the microseconds of CPU of both processes for an exchange.
exchanges() {
	rm -f "$out/cost"
	"$out/cputime" "$out/cost" "$perf" bench sched pipe -l "$loops" >/dev/null 2>&1
	tail -n 1 "$out/cost" | awk -v loops="$loops" '{ print $1 * 1e6 / loops }' >>"$out/offtarget-$1.us"
}

# beside NAME RECORDER...: the same while the recorder runs.
beside() {
	local name=$1
	shift
	start "$@" >"$out/offtarget-$name.log" 2>&1
	local recorder=$last
	sleep 1.5 # until it has opened its events
	exchanges "$name"
	kill -INT "$recorder"
	wait "$recorder" || :
	stop "$recorder"
	grep -o '[0-9,]* samples and switches lost' "$out/offtarget-$name.log" >>"$out/offtarget-$name.lost" || :
}
ours() {
	beside "$1" "$spoor" record --off-cpu --no-symbols --no-dotnet -o "$out/offtarget.nettrace" "${@:2}"
}
# not this shell, whose children are recorded with it
start sleep 3600
sleeping=$last
for _ in $(seq "$rounds"); do
	exchanges alone
	ours other -p "$sleeping"
	ours fp -a
	ours dwarf -a --call-graph dwarf
	ours wakers -a --call-graph dwarf --wakers
	beside perf "${with_tracefs[@]}" "$perf" record -a -q -e sched:sched_switch -g -m 4096 -o "$out/offtarget.data"
done
rm -f "$out/offtarget.nettrace" "$out/offtarget.nettrace.old" "$out"/offtarget.data*
for name in alone other fp dwarf wakers perf; do
	echo "$name: $(median_of "$out/offtarget-$name.us") us of CPU an exchange ($(range_of "$out/offtarget-$name.us")); recordings that lost some: $(cat "$out/offtarget-$name.lost" 2>/dev/null | wc -l)"
done
for name in other fp dwarf wakers; do
	ratio "offtarget-$name-us" "$(median_of "$out/offtarget-$name.us")" "$(median_of "$out/offtarget-perf.us")"
done
