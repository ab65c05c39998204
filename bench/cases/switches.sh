# the cost of a recording (-p, 99 Hz) for a program that only switches between its two processes (perf bench sched pipe): --rounds N (7), --loops N (100000)
rounds=7 loops=100000
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--loops) loops=$2 ;;
	*) die "switches takes --rounds and --loops" ;;
	esac
	shift 2
done
build
rm -f "$out"/switches-*

# one NAME RECORDER...: appends the CPU microseconds of both processes for an exchange to switches-NAME.us; PIDS in RECORDER becomes their ids. The
# wall time of an exchange is no measure, because a recorder that keeps a CPU awake makes it shorter.
one() {
	local name=$1 shell program pids words=() recorder=
	shift
	bash -c '"$0" bench sched pipe -l "$1"; times' "$perf" "$loops" >"$out/switches.log" 2>&1 &
	shell=$!
	for _ in $(seq 100); do
		program=$(pgrep -P "$shell") && pids=$(pgrep -d, -P "$program") && break
		sleep 0.02
	done
	[ -n "$pids" ] || die "no second process: $out/switches.log"
	pids=$program,$pids
	if [ $# -gt 0 ]; then
		for word in "$@"; do
			words+=("${word/PIDS/$pids}")
		done
		start "${words[@]}" >/dev/null 2>&1
		recorder=$last
	fi
	wait "$shell" || die "perf bench sched pipe failed: $out/switches.log"
	# The last line of `times` is the CPU time of the shell's children: 0m0.1s 0m2.3s.
	tail -n 1 "$out/switches.log" | awk -F '[ms ]+' -v loops="$loops" '{ print ($1 * 60 + $2 + $3 * 60 + $4) * 1e6 / loops }' >>"$out/switches-$name.us"
	[ -z "$recorder" ] || wait "$recorder" || die "$name did not record"
}
for _ in $(seq "$rounds"); do
	one alone
	one spoor "$spoor" record -q -F 99 -p PIDS -o "$out/switches.nettrace"
	one threads "$spoor" record -q -F 99 -t PIDS -o "$out/switches.nettrace"
	one perf "$perf" record -q -F 99 -g -p PIDS -o "$out/switches.data"
done
rm -f "$out/switches.nettrace" "$out/switches.nettrace.old" "$out"/switches.data*
for name in alone spoor threads perf; do
	echo "$name: $(median_of "$out/switches-$name.us") us of CPU an exchange ($(range_of "$out/switches-$name.us"))"
done
ratio switches-us "$(median_of "$out/switches-spoor.us")" "$(median_of "$out/switches-perf.us")"
ratio switches-us-over-alone "$(median_of "$out/switches-spoor.us")" "$(median_of "$out/switches-alone.us")"
