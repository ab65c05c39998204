# the recorder's CPU on an idle machine: --seconds S (20), --rate HZ (99), --rounds N (3)
rounds=3 seconds=20 rate=99
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	*) die "idle takes --rounds, --seconds and --rate" ;;
	esac
	shift 2
done
build
rm -f "$out"/idle-*.cost
for _ in $(seq "$rounds"); do
	cost idle-spoor "$spoor" record -a -F "$rate" --duration "${seconds}s" -o "$out/idle.nettrace"
	cost idle-perf "$perf" record -a -g -F "$rate" -o "$out/idle.data" -- sleep "$seconds"
done
show idle-spoor
show idle-perf
tail -n 3 "$out/idle-spoor.log"
rm -f "$out/idle.nettrace" "$out/idle.data"
percent() {
	awk -v cpu="$1" -v wall="$seconds" 'BEGIN { print 100 * cpu / wall }'
}
ratio idle-cpu-percent-of-one "$(percent "$(column idle-spoor 1)")" "$(percent "$(column idle-perf 1)")"
