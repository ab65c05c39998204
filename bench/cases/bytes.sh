# bytes of a recording with names, compared with perf.data: --seconds S (57), --rate HZ (999), --only mix|all|web
seconds=57 rate=999 only=
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	--only) only=$2 ;;
	*) die "bytes takes --seconds, --rate and --only" ;;
	esac
	shift 2
done
build dissect load
rm -f "$out"/bytes-*.cost

# both NAME: records the process $target with both recorders. One after the other, because perf 6.1 uses a whole CPU after a thread of its
# target has ended.
both() {
	local name=$1
	cost "bytes-$name-spoor" "$spoor" record --no-events -p "$target" -F "$rate" --duration "${seconds}s" -o "$out/bytes-$name.nettrace"
	tail -n 3 "$out/bytes-$name-spoor.log"
	cost "bytes-$name-perf" "$perf" record -p "$target" -g -F "$rate" -o "$out/bytes-$name.data" -- sleep "$seconds"
	"$out/dissect" "$out/bytes-$name.nettrace" >"$out/bytes-$name.txt"
}

# tell NAME: prints the parts, in bytes a sample. Names are the bytes of symbols, mappings and code ranges in the event blocks.
tell() {
	local name=$1 perf_samples perf_bytes
	perf_bytes=$(stat -c %s "$out/bytes-$name.data")
	perf_samples=$("$perf" report --stats -i "$out/bytes-$name.data" 2>/dev/null | awk '$1 == "SAMPLE" && $2 == "events:" { print $3; exit }')
	perf_samples=${perf_samples:-$(sed -n 's/.*(\([0-9]*\) samples).*/\1/p' "$out/bytes-$name-perf.log")}
	awk -v name="$name" -v perf_bytes="$perf_bytes" -v perf_samples="${perf_samples:-0}" '
		{ v[$1] = $2 }
		END {
			n = v["samples"]; if (!n) exit
			names = v["payload_bytes_symbol"] + v["payload_bytes_mapping"] + v["payload_bytes_code"] + v["payload_bytes_method"]
			printf "%s: spoor %d samples, %.1f frames each, %d distinct stacks; perf %d samples\n", name, n, v["frames"] / n, v["stacks"], perf_samples
			printf "  spoor %.1f B/sample = stacks %.1f + events %.1f (of these names %.1f: symbols %.1f in %d, mappings %.1f, code %.1f in %d; samples %.1f of payload) + threads and other blocks %.1f\n",
				v["bytes_all"] / n, v["bytes_stack_blocks"] / n, v["bytes_event_blocks"] / n, names / n, v["payload_bytes_symbol"] / n, v["events_symbol"],
				v["payload_bytes_mapping"] / n, v["payload_bytes_code"] / n, v["events_code"], v["payload_bytes_sample"] / n,
				(v["bytes_all"] - v["bytes_stack_blocks"] - v["bytes_event_blocks"]) / n
			if (perf_samples + 0) printf "  perf %.1f B/sample\n", perf_bytes / perf_samples
		}' "$out/bytes-$name.txt"
	eval "samples_$name=$(field samples "$out/bytes-$name.txt") perf_samples_$name=${perf_samples:-0} perf_bytes_$name=$perf_bytes"
}

# end NAME: prints the last lines, in bytes a sample, because the two recorders have different numbers of samples.
end() {
	local name=$1 samples perf_samples perf_bytes ours
	eval "samples=\$samples_$name perf_samples=\$perf_samples_$name perf_bytes=\$perf_bytes_$name"
	ours=$(stat -c %s "$out/bytes-$name.nettrace")
	[ "$perf_samples" -gt 0 ] && ratio "bytes-$name-per-sample" "$(awk -v a="$ours" -v b="$samples" 'BEGIN { print a / b }')" \
		"$(awk -v a="$perf_bytes" -v b="$perf_samples" 'BEGIN { print a / b }')"
	rm -f "$out/bytes-$name.data"
}

# mix: warmed up, like a program in production. all: new code and exceptions all the time, the worst case for sharing stacks.
if [ -z "$only" ] || [ "$only" = mix ]; then
	start_mix $((2 * ${seconds%.*} + 15)) steady
	sleep 4
	both mix
	stop "$target"
	tell mix
fi
if [ -z "$only" ] || [ "$only" = all ]; then
	start_mix $((2 * ${seconds%.*} + 10))
	both all
	stop "$target"
	tell all
fi
if [ -z "$only" ] || [ "$only" = web ]; then
	start_web $((2 * ${seconds%.*} + 20))
	both web
	stop_all
	tell web
fi
for name in ${only:-mix all web}; do
	end "$name"
done
