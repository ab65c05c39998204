# analyses of runtime events, compared with programs on TraceEvent: --rounds N (5), --seconds S (8)
rounds=5 seconds=8
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "answers takes --rounds and --seconds" ;;
	esac
	shift 2
done
need dotnet
build
printer=$out/printer/bin/printer/release/Printer.dll
[ "$printer" -nt bench/printer/Printer.cs ] ||
	dotnet build bench/printer -c Release --artifacts-path "$out/printer" -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$out/printer.log" 2>&1 ||
	die "bench/printer could not be built: $out/printer.log"
managed=$(scripts/test-programs managed) || die "$managed"
rm -rf "$out/answers" "$out"/answers-*.cost
mkdir "$out/answers"

# A program that throws as fast as it can: four events for each exception, and collections.
(cd "$out/answers" && exec dotnet "$managed" throws $((seconds * 1000))) >"$out/answers/ready" &
target=$!
started+=("$target")
until grep -q ready "$out/answers/ready"; do sleep 0.1; done
"$spoor" trace -q -p "$target" --clrevents exception+gc+contention+threading -o "$out/answers/x.nettrace" </dev/null &
recorder=$!
started+=("$recorder")
until [ -s "$out/answers/x.nettrace" ]; do sleep 0.1; done
sleep 1
touch "$out/answers/go"
until grep -q thrown "$out/answers/ready"; do sleep 0.1; done
kill -INT "$recorder"
wait "$recorder" || die "the trace failed"
stop "$target"
file=$out/answers/x.nettrace
events=$(dotnet "$printer" "$file" events | sed -n 's/^events //p')
[ "$events" -gt 0 ] || die "no events"
for _ in $(seq "$rounds"); do
	for answer in exceptions gc; do
		cost "answers-$answer-spoor" "$spoor" report --$answer --json -o "$out/answers/$answer.json" "$file"
		cost "answers-$answer-peer" dotnet "$printer" "$file" $answer
	done
	cost answers-count-spoor "$spoor" events --summary "$file"
done
echo "$(stat -c %s "$file") bytes, $events events"
rate() { awk -v cpu="$(column "answers-$1" 1)" -v events="$events" 'BEGIN { printf "%.4g", cpu ? events / cpu / 1e6 : 0 }'; }
show answers-count-spoor
for answer in exceptions gc; do
	show "answers-$answer-spoor"
	show "answers-$answer-peer"
	ratio_more "answers-$answer-million-events-a-cpu-second" "$(rate "$answer-spoor")" "$(rate "$answer-peer")"
	ratio "answers-$answer-memory-kib" "$(column "answers-$answer-spoor" 3)" "$(column "answers-$answer-peer" 3)"
done
rm -rf "$out/answers"
