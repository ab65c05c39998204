# the cost of the .NET sessions of record for a web API: two servers under the same load at the same time, one without a diagnostics port: --rounds N (30), --seconds S (2), --options 'OPTIONS' of record
# Other work on the machine affects both servers. So the quotient of their CPU times for a request is accurate to a percent; the throughput is not. Sampling costs the same in both and
# is not included (bench/run record measures it).
rounds=30 seconds=2 options=''
while [ $# -gt 0 ]; do
	case $1 in
	--options) options=$2 ;;
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "sessions takes --rounds, --seconds and --options" ;;
	esac
	shift 2
done
build load
build_web
rm -f "$out"/sessions-*
serve_web sessions-open
open=$target
serve_web sessions-closed DOTNET_EnableDiagnostics=0
closed=$target

hit() {
	"$build/examples/load" -p 0 -l "$out/sessions-$1.times" "$(cat "$out/sessions-$1.port")" "$2" /alloc=1 /throw=1 >"$out/sessions-$1.load" ||
		die "the web API does not answer: $out/sessions-$1.load"
}
both() {
	hit open "$1" &
	local other=$!
	hit closed "$1"
	wait $other || die "the web API does not answer"
}
# Warm up until the code has reached its last tier.
both 20

# one NAME [RECORDER]: runs both servers and appends a line "QUOTIENT RECORDER_US" to sessions-NAME.sum.
one() {
	local a b c=0
	a=$(ticks "$open") b=$(ticks "$closed")
	[ $# = 1 ] || c=$(ticks "$2")
	both "$seconds"
	a=$(($(ticks "$open") - a)) b=$(($(ticks "$closed") - b))
	[ $# = 1 ] || c=$(($(ticks "$2") - c))
	awk -v a="$a" -v n="$(wc -l <"$out/sessions-open.times")" -v b="$b" -v m="$(wc -l <"$out/sessions-closed.times")" -v c="$c" -v hz="$(getconf CLK_TCK)" '
		BEGIN { print a / n / (b / m), c * 1e6 / hz / (n + m), a * 1e6 / hz / n }' >>"$out/sessions-$1.sum"
}
for round in $(seq "$rounds"); do
	for turn in with without; do
		[ $((round % 2)) = 0 ] || { [ $turn = with ] && turn=without || turn=with; }
		if [ $turn = without ]; then
			sleep 1.5
			one without
			continue
		fi
		# shellcheck disable=SC2086
		start "$spoor" record -q -a -F 99 $options -o "$out/sessions.nettrace"
		recorder=$last
		sleep 1.5 # until the recorder has all names
		one with "$recorder"
		kill -INT "$recorder"
		wait "$recorder" || die "the recording failed"
		stop "$recorder"
	done
done
"$spoor" report "$out/sessions.nettrace" | sed -n 2,3p
rm -f "$out/sessions.nettrace" "$out"/sessions-*.times
# Quotients are averaged by their logarithms. Prints one line, of which RATIO uses two columns.
figures=$(paste "$out/sessions-with.sum" "$out/sessions-without.sum" | awk '
	{ d = log($1) - log($4); n++; s += d; q += d * d; r += $2; w += $3; o += $6 }
	END { m = s / n; printf "%.2f %.2f %.2f %.1f %.1f", (exp(m) - 1) * 100, (n > 1 ? sqrt((q / n - m * m) / (n - 1)) * 100 : 0), r / n, w / n, o / n }')
# shellcheck disable=SC2086
set -- $figures
echo "CPU time a request of the one with sessions: $1 +- $2 % more ($rounds pairs of ${seconds} s; $5 us without); the recorder itself $3 us a request"
ratio sessions-cpu-percent "$(awk -v p="$1" 'BEGIN { print 100 + p }')" 100
