# a web API during record -a at 99 Hz with names: --rounds N (80), --seconds S (2), --attach N (10), --options 'OPTIONS' of record, --paths 'PATH=CLIENTS ...' ('/alloc=2 /throw=1')
# Many short runs: the throughput of the server alone varies by a fifth within 20 s, so runs that follow each other are compared.
rounds=80 seconds=2 attach=10 options='' paths='/alloc=2 /throw=1'
while [ $# -gt 0 ]; do
	case $1 in
	--options) options=$2 ;;
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--attach) attach=$2 ;;
	--paths) paths=$2 ;;
	*) die "web takes --rounds, --seconds, --attach, --options and --paths" ;;
	esac
	shift 2
done
build load
rm -f "$out"/web-*.sum "$out"/web-*.log
window=3 # seconds around attaching or detaching
start_web 1
wait "$last" || die "the web API does not answer: $out/web.load"
port=$(cat "$out/web.port")
hit() {
	# shellcheck disable=SC2086
	"$build/examples/load" "$@" $paths >"$out/web.load" || die "the web API does not answer: $out/web.load"
}
# Warm up until the code has reached its last tier and the heap its usual size.
hit -p 0 "$port" 20

# one NAME [RECORDER]: runs the load and appends a line "REQUESTS_PER_SECOND P99_US MAX_US CPU_US_PER_REQUEST" to $out/web-NAME.sum. CPU is the time of server
# and recorder together; on a machine with other work it is a better measure than the throughput.
one() {
	local before after
	before=$(($(ticks "$target") + $(ticks "${2:-none}")))
	hit -p 0 -l "$out/web.times" "$port" "$seconds"
	after=$(($(ticks "$target") + $(ticks "${2:-none}")))
	sort -g -k2,2 "$out/web.times" | awk -v s="$seconds" -v cpu="$((after - before))" -v hz="$(getconf CLK_TCK)" '
		{ v[NR] = $2 } END { print NR / s, v[int(NR * 0.99)], v[NR], cpu * 1e6 / hz / NR }' >>"$out/web-$1.sum"
}

# Order: without, with, with, without, ... so that a drift of the machine affects both.
with() {
	# shellcheck disable=SC2086
	start "$spoor" record -q -a -F 99 $options -o "$out/web.nettrace"
	local recorder=$last
	sleep 1.5 # until the recorder has all names
	one with "$recorder"
	kill -INT "$recorder"
	wait "$recorder" || die "the recording failed"
	stop "$recorder"
}
without() {
	sleep 1.5
	one without
}
for round in $(seq "$rounds"); do
	if [ $((round % 2)) = 0 ]; then
		with && without
	else
		without && with
	fi
done
# The median of the ratios of neighbouring runs.
paired() {
	paste "$out/web-with.sum" "$out/web-without.sum" | awk -v c="$1" '{ print $c / $(c + 4) }' | sort -g |
		awk '{ v[NR] = $1 } END { printf "%.4f", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
# mean_pair N: prints the mean of the ratios of neighbouring runs and its standard error, in percent.
mean_pair() {
	paste "$out/web-with.sum" "$out/web-without.sum" | awk -v c="$1" '{ r = 100 * $c / $(c + 4); n++; s += r; q += r * r }
		END { m = s / n; printf "%.2f +- %.2f %%", m, (n > 1 ? sqrt((q / n - m * m) / (n - 1)) : 0) }'
}
for name in without with; do
	echo "$name: $(median_of "$out/web-$name.sum" 1) requests/s ($(range_of "$out/web-$name.sum" 1)), p99 $(median_of "$out/web-$name.sum" 2) us ($(range_of "$out/web-$name.sum" 2)), greatest $(median_of "$out/web-$name.sum" 3) us ($(range_of "$out/web-$name.sum" 3)), CPU a request $(median_of "$out/web-$name.sum" 4) us ($(range_of "$out/web-$name.sum" 4)), $rounds runs of $seconds s"
done
echo "with / without, median of $rounds neighbours: requests/s $(paired 1), p99 $(paired 2), CPU a request $(paired 4)"
echo "with / without, mean and standard error: requests/s $(mean_pair 1), p99 $(mean_pair 2), CPU a request $(mean_pair 4)"
"$spoor" report "$out/web.nettrace" | sed -n 2,3p

# Attaching and detaching, under a load that does not saturate the CPUs: the slowest request around each, compared with the slowest without.
cpu_pause=1000
total=$((attach * 3 * window + 2 * window))
hit -p $cpu_pause -l "$out/web.times" "$port" "$total" &
load=$!
started+=("$load")
up() {
	cut -d' ' -f1 /proc/uptime
}
: >"$out/web-marks.log"
sleep "$window"
for _ in $(seq "$attach"); do
	echo "quiet $(up)" >>"$out/web-marks.log"
	sleep "$window"
	echo "attach $(up)" >>"$out/web-marks.log"
	start "$spoor" record -q -a -F 99 -o "$out/web.nettrace"
	recorder=$last
	sleep "$window"
	echo "leave $(up)" >>"$out/web-marks.log"
	kill -INT "$recorder"
	wait "$recorder" || die "the recording failed"
	stop "$recorder"
	left=$(tail -n 1 "$out/web-marks.log" | awk -v w="$window" -v now="$(up)" '{ d = $2 + w - now; print (d > 0 ? d : 0) }')
	sleep "$left"
done
wait "$load" || :
# /proc/uptime includes the time of a suspended machine, CLOCK_MONOTONIC does not; the marks would be wrong.
awk -v w="$window" '
	FNR == NR { kind[++n] = $1; from[n] = $2 * 1e6; next }
	{ for (i = 1; i <= n; i++) if ($1 >= from[i] && $1 < from[i] + w * 1e6) { if ($2 > most[i]) most[i] = $2; count[i]++ } }
	END { for (i = 1; i <= n; i++) if (count[i]) print kind[i], most[i], count[i] }' "$out/web-marks.log" "$out/web.times" >"$out/web-most.log"
for kind in quiet attach leave; do
	grep "^$kind " "$out/web-most.log" | cut -d' ' -f2 | sort -g | awk -v kind=$kind '{ v[NR] = $1 } END { printf "slowest request in %d s, %s: median %.0f us (%.0f to %.0f), %d times\n", '"$window"', kind, v[int((NR + 1) / 2)], v[1], v[NR], NR }'
done
usual=$(grep '^quiet ' "$out/web-most.log" | cut -d' ' -f2 | sort -g | tail -n 1)
over=$(awk -v usual="$usual" -v w="$window" '
	FNR == NR { if ($1 != "quiet") from[++n] = $2 * 1e6; next }
	{ for (i = 1; i <= n; i++) if ($1 >= from[i] && $1 < from[i] + w * 1e6) { all++; over += $2 > 1.5 * usual } }
	END { print over + 0, all + 0 }' "$out/web-marks.log" "$out/web.times")
echo "requests above 1.5 times the greatest of quiet times ($usual us), while attaching or detaching: ${over% *} of ${over#* }"
rm -f "$out/web.nettrace" "$out/web.times"
most() {
	grep "^$1 " "$out/web-most.log" | cut -d' ' -f2 | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
ratio_more web-requests-per-s "$(median_of "$out/web-with.sum" 1)" "$(median_of "$out/web-without.sum" 1)"
ratio web-p99-us "$(median_of "$out/web-with.sum" 2)" "$(median_of "$out/web-without.sum" 2)"
ratio web-cpu-us-per-request "$(median_of "$out/web-with.sum" 4)" "$(median_of "$out/web-without.sum" 4)"
ratio web-slowest-attaching-us "$(most attach)" "$(most quiet)"
ratio web-slowest-leaving-us "$(most leave)" "$(most quiet)"
