# packed recordings with names, compared with perf record -z: --seconds S (57), --rate HZ (999), --only mix|all|web (mix and web)
seconds=57 rate=999 only=
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	--only) only=$2 ;;
	*) die "packed takes --seconds, --rate and --only" ;;
	esac
	shift 2
done
need zstd
build dissect load
rm -f "$out"/packed-*.cost

# three NAME: records the process $target with -z, without, and with perf -z. One after the other, because perf 6.1 uses a whole CPU after a thread of
# its target has ended.
three() {
	local name=$1 file=$out/packed-$1
	cost "packed-$name-z" "$spoor" record --no-events -z -p "$target" -F "$rate" --duration "${seconds}s" -o "$file.nettrace.zst"
	tail -n 3 "$out/packed-$name-z.log"
	cost "packed-$name-plain" "$spoor" record --no-events -p "$target" -F "$rate" --duration "${seconds}s" -o "$file.nettrace"
	cost "packed-$name-perf" "$perf" record -z -p "$target" -g -F "$rate" -o "$file.data" -- sleep "$seconds"
}

tell() {
	local name=$1 file=$out/packed-$1 z plain perf_bytes samples plain_samples perf_samples
	zstd -q -t "$file.nettrace.zst" || die "zstd does not take $file.nettrace.zst"
	"$out/dissect" "$file.nettrace.zst" >"$file.txt"
	"$out/dissect" "$file.nettrace" >"$file-plain.txt"
	z=$(stat -c %s "$file.nettrace.zst") plain=$(stat -c %s "$file.nettrace") perf_bytes=$(stat -c %s "$file.data")
	samples=$(field samples "$file.txt") plain_samples=$(field samples "$file-plain.txt")
	perf_samples=$("$perf" report --stats -i "$file.data" 2>/dev/null | awk '$1 == "SAMPLE" && $2 == "events:" { print $3; exit }')
	rm -f "$file.data"
	[ "${perf_samples:-0}" -gt 0 ] || die "perf took no samples of $name"
	awk -v name="$name" -v z="$z" -v n="$samples" -v plain="$plain" -v pn="$plain_samples" -v perf="$perf_bytes" -v fn="$perf_samples" -v whole="$(zstd -q -d -c "$file.nettrace.zst" | wc -c)" 'BEGIN {
		printf "%s: packed %.2f B/sample (%d samples; unpacked %.1f), plain %.1f (%d), perf -z %.2f (%d)\n", name, z / n, n, whole / n, plain / pn, pn, perf / fn, fn }'
	for kind in z plain perf; do
		show "packed-$name-$kind"
	done
	eval "ours_$name=$(awk -v a="$z" -v b="$samples" 'BEGIN { print a / b }') peer_$name=$(awk -v a="$perf_bytes" -v b="$perf_samples" 'BEGIN { print a / b }')"
}

if [ -z "$only" ] || [ "$only" = mix ]; then
	start_mix $((3 * ${seconds%.*} + 25)) steady
	sleep 4
	three mix
	stop "$target"
	tell mix
fi
if [ "$only" = all ]; then
	start_mix $((3 * ${seconds%.*} + 20))
	three all
	stop "$target"
	tell all
fi
if [ -z "$only" ] || [ "$only" = web ]; then
	start_web $((3 * ${seconds%.*} + 30))
	three web
	stop_all
	tell web
fi
for name in ${only:-mix web}; do
	eval "ratio packed-$name-per-sample \$ours_$name \$peer_$name"
	ratio "packed-$name-cpu-of-plain" "$(column "packed-$name-z" 1)" "$(column "packed-$name-plain" 1)"
done
