# the cost of runtime events in a recording, of the web demo and of bench/mix: --rounds N (5), --seconds S (10)
rounds=5 seconds=10
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "runtime takes --rounds and --seconds" ;;
	esac
	shift 2
done
build load
rm -f "$out"/runtime-*.cost "$out"/runtime-*.bytes "$out"/runtime-*.log "$out"/runtime-*.target

# one NAME [OPTION]: records the target and appends the cost, the bytes, and the target's CPU time meanwhile.
one() {
	local name=$1 before
	shift
	before=$(ticks "$target")
	cost "runtime-$name" "$spoor" record -p "$target" -F 99 --duration "${seconds}s" -o "$out/runtime.nettrace" "$@"
	echo $(($(ticks "$target") - before)) >>"$out/runtime-$name.target"
	stat -c %s "$out/runtime.nettrace" >>"$out/runtime-$name.bytes"
	"$spoor" report "$out/runtime.nettrace" >"$out/runtime-$name.report"
}

# both NAME: measures with and without events in turns, so that a drift of the machine affects both.
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
		show "runtime-$program-$kind"
		echo "  bytes $(median_of "$out/runtime-$program-$kind.bytes") in $seconds s; CPU of the program $(median_of "$out/runtime-$program-$kind.target") ticks"
		grep -o '[0-9,.]* samples.*' "$out/runtime-$program-$kind.log" | tail -n 1 | sed 's/^/  /'
	done
}

start_web 3600
both web
stop_all
start_mix 3600
both mix
stop_all
rm -f "$out/runtime.nettrace"
for program in web mix; do
	ratio "runtime-$program-cpu-s" "$(column "runtime-$program-with" 1)" "$(column "runtime-$program-without" 1)"
	ratio "runtime-$program-bytes" "$(median_of "$out/runtime-$program-with.bytes")" "$(median_of "$out/runtime-$program-without.bytes")"
done
