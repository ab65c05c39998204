# the cost of `spoor diagnose` for a web API, its memory, and the time until its answer: --rounds N (8), --seconds S (10)
# Other work on the machine changes the throughput, so the server's CPU time for a request is compared, with and without a diagnosis, in turns.
rounds=8 seconds=10
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "diagnose takes --rounds and --seconds" ;;
	esac
	shift 2
done
build load
build_web
rm -f "$out"/diagnose*
serve_web diagnose

hit() {
	"$build/examples/load" -p 500 -l "$out/diagnose.times" "$(cat "$out/diagnose.port")" "$1" /alloc=2 >"$out/diagnose.load" ||
		die "the web API does not answer: $out/diagnose.load"
}
# Warm up until the code has reached its last tier.
hit 20

# one NAME: appends the CPU time for a request, in microseconds, to diagnose-NAME.sum.
one() {
	local before diagnosis=''
	before=$(ticks "$target")
	if [ "$1" = with ]; then
		cost diagnose "$spoor" diagnose -p "$target" --duration "${seconds}s" -o "$out/diagnose.nettrace" --json &
		diagnosis=$!
	fi
	hit "$seconds"
	[ -z "$diagnosis" ] || wait "$diagnosis" || die "the diagnosis failed"
	awk -v t=$(($(ticks "$target") - before)) -v n="$(wc -l <"$out/diagnose.times")" -v hz="$(getconf CLK_TCK)" \
		'BEGIN { print t * 1e6 / hz / n }' >>"$out/diagnose-$1.sum"
}
for round in $(seq "$rounds"); do
	for turn in with without; do
		[ $((round % 2)) = 0 ] || { [ $turn = with ] && turn=without || turn=with; }
		one $turn
	done
done
show diagnose
rm -f "$out"/diagnose.nettrace* "$out/diagnose.times"
echo "CPU time a request, us: $(median_of "$out/diagnose-with.sum") ($(range_of "$out/diagnose-with.sum")) with a diagnosis of $seconds s, $(median_of "$out/diagnose-without.sum") ($(range_of "$out/diagnose-without.sum")) without"
echo "until the answer, after the recording: $(awk -v w="$(column diagnose 2)" -v s="$seconds" 'BEGIN { print w - s }') s, with the start of the recorder"
ratio diagnose-cpu-a-request "$(median_of "$out/diagnose-with.sum")" "$(median_of "$out/diagnose-without.sum")"
