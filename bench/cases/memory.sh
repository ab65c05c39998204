# names of .NET methods from memory and from a session: bench/mix, names without events: --rounds N (5), --seconds S (8)
rounds=5 seconds=8
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "memory takes --rounds and --seconds" ;;
	esac
	shift 2
done
build memory_read
rm -f "$out"/memory-*
start_mix $((2 * rounds * (seconds + 6) + 60)) steady
sleep 5

# named FILE: prints the addresses of the methods in a recording, each with its time: in steps of 10 ms, the shortest between two passes of the recorder.
named() {
	"$spoor" events "$1" --event ProcessSymbol --json | jq -r 'select(.fields.Name | contains("::")) | .time[11:22] + " " + (.fields.Start | ltrimstr("0x"))' |
		awk '!seen[$2]++'
}
for round in $(seq "$rounds"); do
	cost memory-session "$spoor" record -q --no-events -F 999 -p "$target" --duration "${seconds}s" -o "$out/memory-session.nettrace"
	cost memory-read "$spoor" record -q --names-from-memory -F 999 -p "$target" --duration "${seconds}s" -o "$out/memory-read.nettrace"
	named "$out/memory-read.nettrace" >"$out/memory.methods"
	"$out/memory_read" "$target" <"$out/memory.methods" >"$out/memory.figures" || die "the process cannot be read"
	for name in as_found_us cold_us pass_us first_us open_us; do
		field $name "$out/memory.figures" >>"$out/memory-$name"
	done
	echo "round $round: $(field methods "$out/memory.figures") methods, $(field named "$out/memory.figures") named"
done
machine
show memory-session
show memory-read
echo "opening a process: $(median_of "$out/memory-open_us") us; a method with its metadata: $(median_of "$out/memory-first_us") us; each in a pass of its own: $(median_of "$out/memory-cold_us") us; all in one pass: $(median_of "$out/memory-pass_us") us"
ratio recorder_cpu_s "$(column memory-read 1)" "$(column memory-session 1)"
ratio us_per_new_method "$(median_of "$out/memory-as_found_us")" 10
