# the recorder's own CPU, all CPUs busy: --rounds N (5), --seconds S (2.5), --rate HZ (999)
rounds=5 seconds=2.5 rate=999
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	*) die "record takes --rounds, --seconds and --rate" ;;
	esac
	shift 2
done
build spin
rm -f "$out"/record-*.cost
start "$out/spin" 3600
sleep 0.5
for _ in $(seq "$rounds"); do
	cost record-spoor-no-names "$spoor" record -a -F "$rate" --no-symbols --no-dotnet --duration "${seconds}s" -o "$out/record.nettrace"
	cost record-perf-B-N "$perf" record -a -g -B -N -F "$rate" -o "$out/record.data" -- sleep "$seconds"
	cost record-spoor "$spoor" record -a -F "$rate" --no-dotnet --duration "${seconds}s" -o "$out/record.nettrace"
	cost record-perf "$perf" record -a -g -F "$rate" -o "$out/record.data" -- sleep "$seconds"
done
stop "$last"
for name in spoor-no-names perf-B-N spoor perf; do
	show "record-$name"
done
tail -n 3 "$out/record-spoor.log"
rm -f "$out/record.nettrace" "$out/record.data"
ratio record-no-names-cpu-s "$(column record-spoor-no-names 1)" "$(column record-perf-B-N 1)"
ratio record-names-cpu-s "$(column record-spoor 1)" "$(column record-perf 1)"
