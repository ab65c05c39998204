# spoor forward of one EventSource to a file, USDT and LTTng, beside dotnet-trace: --rounds N (3), --seconds S (10), --rate EVENTS (100000)
rounds=3 seconds=10 rate=100000
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	*) die "forward takes --rounds, --seconds and --rate" ;;
	esac
	shift 2
done
need dotnet
build
program=$(scripts/test-programs forwarded) || die "the program was not built: $program"
peer=${DOTNET_TRACE:-$(scripts/test-programs dotnet-trace)} || peer=
machine
rm -rf "$out"/forward-*.cost "$out"/forward-*.said "$out/forward.lttng"

# LTTng's session daemon serves the whole machine for root: this one has a separate /run. Its arguments: a file for the costs, then the command.
cat >"$out/forward-lttng" <<-'SH'
	mount -t tmpfs none /run || exit 1
	export HOME=$1 LTTNG_HOME=$1
	mkdir -p "$HOME"
	lttng-sessiond --no-kernel >"$HOME/daemon.log" 2>&1 &
	daemon=$!
	for _ in $(seq 600); do lttng --no-sessiond list >/dev/null 2>&1 && break; sleep 0.1; done
	shift
	(lttng --no-sessiond create s --output="$HOME/trace" && lttng --no-sessiond enable-channel -u c --subbuf-size=4M &&
		lttng --no-sessiond enable-event -u -c c 'Forwarded_Types:*' && lttng --no-sessiond start) >"$HOME/lttng.log" 2>&1 || exit 1
	"$@"
	code=$?
	lttng --no-sessiond destroy >"$HOME/destroy.log" 2>&1
	babeltrace2 "$HOME/trace" 2>/dev/null | grep -c 'Forwarded_Types:Warned' >"$HOME/count"
	kill $daemon
	wait $daemon
	exit $code
SH

# forward NAME COMMAND...: its cost, and what it said of the events.
forward() {
	local name=$1
	shift
	cost "forward-$name" "$@"
	grep -h 'received in' "$out/forward-$name.log" >>"$out/forward-$name.said" || :
}

to_lttng=
! command -v lttng-sessiond >/dev/null || ! command -v babeltrace2 >/dev/null || to_lttng=yes
for _ in $(seq "$rounds"); do
	rm -f "$out/forward.ready"
	start dotnet "$program" "$out/forward.ready" "$rate"
	target=$last
	until [ -e "$out/forward.ready" ]; do sleep 0.1; done
	sleep 1
	common=(-p "$target" --providers Forwarded-Types:7:5 --duration "${seconds}s")
	forward usdt "$spoor" forward --to usdt "${common[@]}"
	forward file "$spoor" forward --to file -o "$out/forward.nettrace" "${common[@]}"
	forward json "$spoor" forward --to file -o "$out/forward.nettrace" --as-json "${common[@]}"
	if [ -n "$to_lttng" ]; then
		unshare --mount sh "$out/forward-lttng" "$out/forward.lttng" "$out/cputime" "$out/cost" "$spoor" forward --to lttng "${common[@]}" \
			>"$out/forward-lttng.log" 2>&1 || die "LTTng: $(tail -n 3 "$out/forward-lttng.log")"
		cat "$out/cost" >>"$out/forward-lttng.cost"
		rm -f "$out/cost"
		grep -h 'received in' "$out/forward-lttng.log" >>"$out/forward-lttng.said"
		echo "LTTng wrote $(cat "$out/forward.lttng/count") events" >>"$out/forward-lttng.said"
		rm -rf "$out/forward.lttng"
	fi
	[ -z "$peer" ] || cost forward-peer "$peer" collect -p "$target" --providers Forwarded-Types:0x7:5 \
		--duration "$(printf '00:00:%02d:%02d' $((seconds / 60)) $((seconds % 60)))" -o "$out/forward.nettrace"
	stop "$target"
	rm -f "$out/forward.nettrace"
done
# percent NAME: of one CPU, at that rate, as a busy machine may have fired fewer events.
percent() {
	sed -n 's/^\([0-9,]*\) events of .*/\1/p' "$out/forward-$1.said" | tr -d , >"$out/forward-$1.events"
	awk -v cpu="$(column "forward-$1" 1)" -v events="$(median_of "$out/forward-$1.events")" -v rate="$rate" 'BEGIN { printf "%.4g", 100 * cpu * rate / events }'
}
for name in usdt file json lttng peer; do
	[ -e "$out/forward-$name.cost" ] || continue
	show "forward-$name"
	[ ! -e "$out/forward-$name.said" ] || sed 's/^/    /' "$out/forward-$name.said"
	[ "$name" = peer ] || echo "    $(percent $name) % of one CPU at $rate events a second"
done
for name in usdt file json lttng; do
	[ ! -e "$out/forward-$name.cost" ] || ratio "forward-$name-percent" "$(percent $name)" 15
done
[ -z "$peer" ] || ratio forward-file-cpu-s "$(column forward-file 1)" "$(column forward-peer 1)"
