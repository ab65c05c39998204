# the share of frames with a name in bench/mix, a .NET program: --seconds S (30), --rate HZ (999), --code (dump the code around unnamed addresses)
seconds=30 rate=999 code=
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	--code)
		code=1
		shift
		continue
		;;
	*) die "names takes --seconds, --rate and --code" ;;
	esac
	shift 2
done
build dissect
rm -f "$out"/names-*.cost
start_mix $((${seconds%.*} * 2 + 60))
cost names-perf "$perf" record -p "$target" -g -F "$rate" -o "$out/names.data" -- sleep 5
# This process only: other .NET processes on the machine may end before their names are known.
cost names-spoor "$spoor" record -p "$target" -F "$rate" --duration "${seconds}s" -o "$out/names.nettrace"
"$out/dissect" "$out/names.nettrace" ${code:+"$target"} >"$out/names.txt"
# perf has no names for managed frames without the runtime's map file.
"$perf" script -i "$out/names.data" -F ip,sym,dso 2>/dev/null |
	awk 'NF && /doublemapper|anon|\.dll\)|\[unknown\] \(\/tmp\/perf/ { all++; if ($0 !~ /\[unknown\]/) named++ } END { printf "%d %d\n", all, named }' >"$out/names-perf.txt"
"$perf" script -i "$out/names.data" -F ip,sym,dso 2>/dev/null |
	awk '$1 ~ /^ffff/ { all++; if ($0 !~ /\[unknown\]/) named++ } END { printf "%d %d\n", all, named }' >"$out/names-perf-kernel.txt"
stop "$target"
cat "$out/names-spoor.log"
share() {
	awk -v named="$(field "named_$1" "$out/names.txt")" -v all="$(field "frames_$1" "$out/names.txt")" 'BEGIN { printf "%.4f", all ? 100 * named / all : 0 }'
}
for kind in managed jit r2r stub kernel native unknown; do
	printf '%-8s %9d frames, %9.4f %% named\n' $kind "$(field frames_$kind "$out/names.txt")" "$(share $kind)"
done
echo "unnamed, by module (frames, kind, module):"
awk '$1 == "unnamed" { sum[$2 " " $4] += $3 } END { for (key in sum) print sum[key], key }' "$out/names.txt" | sort -rn | head -n 20
echo "all of them by address: $out/names.txt"
ratio_more names-managed-percent "$(share managed)" "$(awk '{ print $1 ? 100 * $2 / $1 : 0 }' "$out/names-perf.txt")"
ratio_more names-kernel-percent "$(share kernel)" "$(awk '{ print $1 ? 100 * $2 / $1 : 0 }' "$out/names-perf-kernel.txt")"
rm -f "$out/names.data"
