# the time from a file to a flame graph, and to the report: --seconds S (65), --rate HZ (3999), --rounds N (5), --depth N (60), --paths N (500)
seconds=65 rate=3999 rounds=5 depth=60 paths=500
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	--rounds) rounds=$2 ;;
	--depth) depth=$2 ;;
	--paths) paths=$2 ;;
	*) die "flame takes --seconds, --rate, --rounds, --depth and --paths" ;;
	esac
	shift 2
done
build spin dissect
rm -f "$out"/flame-*.cost "$out"/flame.nettrace "$out"/flame.data
start "$out/spin" 3600 "$(nproc)" "$depth" "$paths"
spin=$last
# Only the workload is recorded: perf 6.1 aborts on some forms of build ids, which other programs on the machine may have.
start "$perf" record -p "$spin" -g -F "$rate" -o "$out/flame.data" -- sleep "$seconds" >"$out/flame-record-perf.log" 2>&1
peer=$last
"$spoor" record -a -F "$rate" --duration "${seconds}s" -o "$out/flame.nettrace"
wait "$peer" || die "perf failed: $out/flame-record-perf.log"
stop "$spin"
start "$out/spin" 3600 "$(nproc)" 24 100
"$spoor" record -a -F 999 --duration 60s -o "$out/flame-minute.nettrace"
stop "$last"
"$out/dissect" "$out/flame.nettrace" >"$out/flame.txt"
frames=$(field frames "$out/flame.txt")
for _ in $(seq "$rounds"); do
	cost flame-spoor "$spoor" flame "$out/flame.nettrace" -o "$out/flame.svg"
	cost flame-report "$spoor" report "$out/flame.nettrace"
	cost flame-report-minute "$spoor" report "$out/flame-minute.nettrace"
done
# perf script is only the first of two steps to a flame graph. It is so much slower than spoor flame that two runs are enough.
perf_frames=0
for _ in 1 2; do
	cost flame-perf-script "$perf" script -i "$out/flame.data"
	perf_frames=$(grep -c '^	' "$out/flame-perf-script.log")
	rm -f "$out/flame-perf-script.log"
	cost flame-perf-report "$perf" report --stdio --no-children -g none -i "$out/flame.data"
done
echo "spoor: $(field samples "$out/flame.txt") samples, $frames frames, $(field stacks "$out/flame.txt") distinct stacks, $(stat -c %s "$out/flame.nettrace") bytes; perf: $perf_frames frames of the workload, $(stat -c %s "$out/flame.data") bytes"
show flame-spoor
show flame-perf-script
show flame-report
show flame-report-minute
show flame-perf-report
per_second() {
	awk -v frames="$1" -v cpu="$2" 'BEGIN { printf "%.4g", frames / cpu / 1e6 }'
}
ratio_more flame-million-frames-per-cpu-s "$(per_second "$frames" "$(column flame-spoor 1)")" "$(per_second "$perf_frames" "$(column flame-perf-script 1)")"
# Both read the same time of the same workload; the minute is compared with its target only.
ratio report-wall-s "$(column flame-report 2)" "$(column flame-perf-report 2)"
ratio report-minute-wall-s-against-target "$(column flame-report-minute 2)" 0.3
rm -f "$out/flame.data"
