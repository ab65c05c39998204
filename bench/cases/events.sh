# the runtimes' events of a recording: with and without, web demo and mixed program: --rounds N (5), --seconds S (10)
rounds=5 seconds=10
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "events takes --rounds and --seconds" ;;
	esac
	shift 2
done
build load
rm -f "$out"/events-*.cost "$out"/events-*.bytes "$out"/events-*.log "$out"/events-*.target

# Ticks of CPU time of the target.
ticks() {
	sed 's/.*) //' "/proc/$target/stat" | awk '{ print $12 + $13 }'
}

# one NAME [OPTION]: a recording of the target; its cost, its bytes, the target's CPU meanwhile.
one() {
	local name=$1 before
	shift
	before=$(ticks)
	cost "events-$name" "$spoor" record -p "$target" -F 99 --duration "${seconds}s" -o "$out/events.nettrace" "$@"
	echo $(($(ticks) - before)) >>"$out/events-$name.target"
	stat -c %s "$out/events.nettrace" >>"$out/events-$name.bytes"
	"$spoor" report "$out/events.nettrace" >"$out/events-$name.report"
}

middle() {
	sort -g "$1" | awk '{ v[NR] = $1 } END { printf "%.6g", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# both NAME: rounds that alternate, so that a drift of the machine hits both alike.
both() {
	local program=$1 round kind
	for round in $(seq "$rounds"); do
		if [ $((round % 2)) = 0 ]; then
			one "$program-with"
			one "$program-without" --no-events
		else
			one "$program-without" --no-events
			one "$program-with"
		fi
	done
	for kind in with without; do
		show "events-$program-$kind"
		echo "  bytes $(middle "$out/events-$program-$kind.bytes") in $seconds s; CPU of the program $(middle "$out/events-$program-$kind.target") ticks"
		grep -o '[0-9,.]* samples.*' "$out/events-$program-$kind.log" | tail -n 1 | sed 's/^/  /'
	done
}

start_web 3600
both web
stop_all
start_mix 3600
both mix
stop_all
rm -f "$out/events.nettrace"
for program in web mix; do
	ratio "events-$program-cpu-s" "$(column "events-$program-with" 1)" "$(column "events-$program-without" 1)"
	ratio "events-$program-bytes" "$(middle "$out/events-$program-with.bytes")" "$(middle "$out/events-$program-without.bytes")"
done
