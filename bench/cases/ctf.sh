# reading LTTng's traces, beside babeltrace2: --rounds N (5), --million N (2) events
rounds=5 million=2
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--million) million=$2 ;;
	*) die "ctf takes --rounds and --million" ;;
	esac
	shift 2
done
need lttng-sessiond
need babeltrace2
build fire_lttng
machine
rm -f "$out"/ctf-*.cost

# A separate LTTng daemon with its own folder, so that it does not share another user's.
export LTTNG_HOME=$out/lttng LTTNG_RUNDIR=$out/lttng/run
rm -rf "$LTTNG_HOME" "$out/ctf"
mkdir -p "$LTTNG_RUNDIR"
lttng-sessiond --no-kernel --quiet >"$out/lttng.log" 2>&1 &
daemon=$!
started+=("$daemon")
for _ in $(seq 100); do
	lttng --no-sessiond list >/dev/null 2>&1 && break
	sleep 0.1
done
lttng_do() {
	lttng --no-sessiond "$@" >>"$out/lttng-cmd.log" 2>&1 || die "lttng $*: $(tail -n 2 "$out/lttng-cmd.log")"
}
lttng_do create ctf --output="$out/ctf"
lttng_do enable-channel -s ctf -u c --subbuf-size=16M
lttng_do enable-event -s ctf -u -c c spoor_bench:four
lttng_do add-context -s ctf -u -c c -t vpid -t vtid
lttng_do start ctf
"$out/fire_lttng" rate 1 "$million" 1 >"$out/ctf-fired.log"
lttng_do stop ctf
lttng_do destroy ctf
stop "$daemon"
events=$("$spoor" events "$out/ctf" --summary --json | jq .count)
echo "$events events, $(du -sh "$out/ctf" | cut -f 1)"

# With and without lines: the peer's sink "dummy" decodes, and prints nothing.
for _ in $(seq "$rounds"); do
	cost ctf-lines sh -c '"$0" events "$1" >/dev/null' "$spoor" "$out/ctf"
	cost ctf-peer-lines sh -c 'babeltrace2 --no-delta "$0" >/dev/null' "$out/ctf"
	cost ctf-count "$spoor" events --summary "$out/ctf"
	cost ctf-peer-count babeltrace2 --output-format=dummy "$out/ctf"
done
for name in lines peer-lines count peer-count; do
	show "ctf-$name"
done
rm -rf "$out/ctf" "$LTTNG_HOME"
ratio ctf-lines-cpu-s "$(column ctf-lines 1)" "$(column ctf-peer-lines 1)"
ratio ctf-count-cpu-s "$(column ctf-count 1)" "$(column ctf-peer-count 1)"
