# events of libspoor, LTTng-UST and .NET's EventSource: disabled, enabled, many sessions, rates: --rounds N (7), --seconds S of the rates (5)
rounds=7 seconds=5
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "lib takes --rounds and --seconds" ;;
	esac
	shift 2
done
build libspoor fire
fire=$out/fire
export FIRE_FOLDER=$out
rm -f "$out"/lib-*.figures "$out"/fire*.nettrace

# one NAME COMMAND...: runs it, and appends its event_ns to the figures of NAME.
one() {
	local name=$1
	shift
	"$@" >"$out/one.log" 2>&1 || die "it failed: $*: $(tail -n 2 "$out/one.log")"
	field event_ns "$out/one.log" >>"$out/lib-$name.figures"
}

# pair NAME COMMAND...: runs a command that measures one and many in turns, and appends the medians of both and of their quotients: for all moments, for near and for far cores.
pair() {
	local name=$1 which
	shift
	"$@" >"$out/one.log" 2>&1 || die "it failed: $*: $(tail -n 2 "$out/one.log")"
	for which in all near far; do
		echo "$(field ${which}_moments "$out/one.log") $(field ${which}_one_ns "$out/one.log") $(field ${which}_many_ns "$out/one.log") $(field ${which}_ratio "$out/one.log") $(field ${which}_round_trip_ns "$out/one.log")" >>"$out/lib-$name-$which.figures"
	done
}

# of_pair NAME WHICH COLUMN: prints the median over the rounds with at least ten such moments, or 0.
of_pair() {
	awk -v column="$3" '$1 >= 10 { print $column }' "$out/lib-$1-$2.figures" | sort -g |
		awk '{ v[NR] = $1 } END { printf "%.4g", !NR ? 0 : NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

pair_spread() {
	local which moments
	for which in all near far; do
		moments=$(awk '{ n += $1 } END { print n + 0 }' "$out/lib-$1-$which.figures")
		if [ "$moments" -eq 0 ]; then
			echo "$1, $which cores: no moment"
			continue
		fi
		echo "$1, $which cores: $(of_pair "$1" $which 2) and $(of_pair "$1" $which 3) ns, quotient $(of_pair "$1" $which 4) ($moments moments, there and back $(of_pair "$1" $which 5) ns)"
	done
}

# median NAME: prints the median. spread NAME: prints median, minimum and maximum in one line.
median() {
	sort -g "$out/lib-$1.figures" | awk '{ v[NR] = $1 } END { printf "%.4g", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
spread() {
	sort -g "$out/lib-$1.figures" | awk -v name="$1" -v median="$(median "$1")" '
		NR == 1 { least = $1 } { most = $1 } END { printf "%-26s %8.2f ns (%.2f to %.2f, %d runs)\n", name, median, least, most, NR }'
}

# A separate LTTng daemon with its own folder, so that it does not share another user's.
lttng=
if command -v lttng-sessiond >/dev/null && cmake --build "$build" --target fire_lttng -- --quiet >/dev/null 2>&1; then
	export LTTNG_HOME=$out/lttng LTTNG_RUNDIR=$out/lttng/run
	rm -rf "$LTTNG_HOME"
	mkdir -p "$LTTNG_RUNDIR"
	lttng-sessiond --quiet >"$out/lttng.log" 2>&1 &
	last=$!
	started+=("$last")
	for _ in $(seq 50); do
		lttng --no-sessiond list >/dev/null 2>&1 && break
		sleep 0.1
	done
	lttng --no-sessiond list >/dev/null 2>&1 && lttng=1
fi
[ -n "$lttng" ] || echo "LTTng-UST is not here (lttng-tools, liblttng-ust-dev): ours alone"

# The same event in .NET: an EventSource over EventPipe, without stacks.
eventsource=$out/eventsource/bin/eventsource/release/eventsource.dll
if ! command -v dotnet >/dev/null || ! dotnet build bench/eventsource -c Release --artifacts-path "$out/eventsource" -v quiet -nodeReuse:false >"$out/eventsource.log" 2>&1; then
	echo "no .NET SDK here, or NuGet could not be reached: not beside EventSource"
	eventsource=
fi

# lttng_session start EVENT, lttng_session stop
lttng_session() {
	case $1 in
	start)
		{
			lttng --no-sessiond create bench --output="$out/lttng/trace"
			lttng --no-sessiond enable-channel -u --subbuf-size=1M --num-subbuf=8 --discard one
			lttng --no-sessiond enable-event -u "$2" -c one
			lttng --no-sessiond start
		} >"$out/lttng-cmd.log" 2>&1
		;;
	stop)
		lttng --no-sessiond destroy bench >>"$out/lttng-cmd.log" 2>&1
		rm -rf "$out/lttng/trace"
		;;
	esac
}

# probed NAME PROBE COMMAND...: as one, for a program that waits until a tool enables its probe. bpftrace counts the hits. On a busy machine it may begin to count after the program's first
# events: then the run is repeated.
probed() {
	local name=$1 probe=$2 program tool
	shift 2
	[ -n "$usdt" ] || return 0
	for _ in 1 2 3 4 5; do
		"$@" >"$out/one.log" 2>&1 &
		program=$!
		started+=("$program")
		sleep 1
		bpftrace -p "$program" -e "usdt:$probe { @ = count(); }" >"$out/bpftrace.log" 2>&1 &
		tool=$!
		started+=("$tool")
		wait "$program" || die "it failed: $*: $(tail -n 2 "$out/one.log")"
		wait "$tool" || true
		if grep -q '^@: 2000000$' "$out/bpftrace.log"; then
			field event_ns "$out/one.log" >>"$out/lib-$name.figures"
			return
		fi
	done
	echo "no USDT figures: bpftrace has not counted all events: $(tail -n 1 "$out/bpftrace.log")"
	usdt=
}

usdt=
if [ "$(id -u)" = 0 ] && command -v bpftrace >/dev/null && cmake --build "$build" --target fire_usdt -- --quiet >/dev/null 2>&1; then
	usdt=1
else
	echo "no USDT figures: they need root, bpftrace and systemtap-sdt-dev"
fi

for round in $(seq "$rounds"); do
	"$fire" machine >"$out/machine.$round"
	cat "$out/machine.$round" >>"$out/machine.log"
	echo "round $round: clock $(field clock_ns "$out/machine.$round") ns, counter $(field counter_ns "$out/machine.$round") ns, core to core and back $(field round_trip_ns "$out/machine.$round") ns"
	field clock_ns "$out/machine.$round" >>"$out/lib-clock.figures"
	one off "$fire" disabled
	one counter-file "$fire" cost counter 1 file 1
	one clock-file "$fire" cost clock 1 file 1
	one first "$fire" first
	pair 2-threads "$fire" threads counter file
	pair 8-sessions "$fire" sessions counter memory 8
	if [ -n "$lttng" ]; then
		one lttng-off "$out/fire_lttng" disabled
		lttng_session start spoor_bench:four
		one lttng-file "$out/fire_lttng" cost 1
		lttng_session stop
		lttng_session start Bench:four
		one lttng-logger "$fire" logger lttng
		lttng_session stop
	fi
	if [ -n "$usdt" ]; then
		probed usdt-by-hand "$(realpath "$out/fire_usdt"):spoor_bench:four" "$out/fire_usdt"
		probed usdt-by-hand-in-loop "$(realpath "$out/fire_usdt"):spoor_bench:four" "$out/fire_usdt" loop
		probed usdt-logger ":bench:four" "$fire" logger usdt
	fi
	if [ -n "$eventsource" ]; then
		# Its socket is in a separate folder, so that no tool of this machine attaches.
		mkdir -p "$out/eventsource/tmp"
		one eventsource-plain env TMPDIR="$out/eventsource/tmp" dotnet "$eventsource" "$out/eventsource/x.nettrace" plain
		one eventsource-fastest env TMPDIR="$out/eventsource/tmp" dotnet "$eventsource" "$out/eventsource/x.nettrace"
		rm -f "$out/eventsource/x.nettrace"
	fi
done
for name in clock off counter-file clock-file first ${lttng:+lttng-off lttng-file lttng-logger} ${usdt:+usdt-by-hand usdt-by-hand-in-loop usdt-logger} ${eventsource:+eventsource-plain eventsource-fastest}; do
	spread "$name"
done
pair_spread 2-threads
pair_spread 8-sessions
"$fire" accuracy >"$out/accuracy.log"
echo "converted counter stamps: $(field outside_median_ns "$out/accuracy.log") ns off in the median, $(field outside_p99_ns "$out/accuracy.log") in 99 of 100, $(field outside_most_ns "$out/accuracy.log") at most"
for rate in memory:20:0 memory:20:16 file:5:0; do
	IFS=: read -r name millions ring <<<"$rate"
	"$fire" rate "$name" 2 "$millions" "$seconds" "$ring" >"$out/rate-$name-$ring.log" || die "the numbers of events do not add up"
	echo "rate to $name, $([ "$ring" = 0 ] && echo the default rings || echo "rings of $ring MiB"): $(field millions_per_second "$out/rate-$name-$ring.log") M/s, lost $(field lost_on_the_way "$out/rate-$name-$ring.log") of $(field fired "$out/rate-$name-$ring.log"), the library's thread $(field reader_ns "$out/rate-$name-$ring.log") ns an event (load $(cut -d' ' -f1 /proc/loadavg))"
done
# The share that is lost on this machine as it is now, of both in turns.
if [ -n "$lttng" ]; then
	for round in 1 2 3; do
		for millions in 1 2 5; do
			"$fire" rate file 2 $millions "$seconds" 0 >"$out/rate-turn.log" || die "the numbers of events do not add up"
			lost=$(awk '$1 == "fired" { fired = $2 } $1 == "lost_on_the_way" { lost = $2 } END { print 100 * lost / fired }' "$out/rate-turn.log")
			echo "$lost" >>"$out/lib-lost-$millions.figures"
			lttng_session start spoor_bench:four
			"$out/fire_lttng" rate 2 $millions "$seconds" >"$out/rate-lttng.log"
			lttng --no-sessiond stop bench >>"$out/lttng-cmd.log" 2>&1
			lttng --no-sessiond list bench >"$out/lttng-list.log"
			lttng_session stop
			lttng_lost=$(awk -v fired="$(field fired "$out/rate-lttng.log")" '/[Dd]iscarded events/ { lost += $NF } END { print 100 * lost / fired }' "$out/lttng-list.log")
			echo "$lttng_lost" >>"$out/lib-lttng-lost-$millions.figures"
			echo "round $round: $millions M/s to files, fired $(field fired "$out/rate-turn.log") and lost $lost %, LTTng $(field fired "$out/rate-lttng.log") and $lttng_lost % (load $(cut -d' ' -f1 /proc/loadavg))"
		done
	done
fi
rm -f "$out"/fire*.nettrace

limit() {
	awk -v clock="$(median clock)" 'BEGIN { printf "%.4g", clock + 10 }'
}
ratio lib-off-ns-of-0.15 "$(median off)" 0.15
ratio lib-clock-stamp-ns-of-clock-plus-10 "$(median clock-file)" "$(limit)"
ratio lib-first-events-ns-of-20 "$(median first)" 20
ratio lib-counter-stamp-ns-of-clock "$(median counter-file)" "$(median clock)"
# For pairs: the cost with one session, times the median quotient.
for name in 2-threads 8-sessions; do
	ratio lib-$name-ns-of-1 "$(awk -v one="$(of_pair $name all 2)" -v quotient="$(of_pair $name all 4)" 'BEGIN { printf "%.4g", one * quotient }')" "$(of_pair $name all 2)"
done
ratio_more lib-million-events-a-second-memory-of-20 "$(field millions_per_second "$out/rate-memory-0.log")" 20
ratio_more lib-million-events-a-second-file-of-5 "$(field millions_per_second "$out/rate-file-0.log")" 5
if [ -n "$lttng" ]; then
	for millions in 1 2 5; do
		ratio lib-lost-percent-at-$millions-lttng "$(median lost-$millions)" "$(median lttng-lost-$millions)"
	done
	ratio lib-off-ns-lttng "$(median off)" "$(median lttng-off)"
	ratio lib-event-ns-lttng "$(median clock-file)" "$(median lttng-file)"
	ratio lib-event-counter-ns-lttng "$(median counter-file)" "$(median lttng-file)"
	ratio lib-lttng-logger-ns-of-native "$(median lttng-logger)" "$(median lttng-file)"
fi
if [ -n "$usdt" ]; then
	ratio lib-usdt-logger-ns-of-by-hand "$(median usdt-logger)" "$(median usdt-by-hand)"
	ratio lib-usdt-logger-ns-of-by-hand-in-loop "$(median usdt-logger)" "$(median usdt-by-hand-in-loop)"
fi
if [ -n "$eventsource" ]; then
	ratio lib-event-ns-eventsource "$(median clock-file)" "$(median eventsource-plain)"
	ratio lib-event-counter-ns-eventsource "$(median counter-file)" "$(median eventsource-plain)"
	ratio lib-event-counter-ns-eventsource-fastest "$(median counter-file)" "$(median eventsource-fastest)"
fi
