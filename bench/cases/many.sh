# record with many .NET processes: time until all have names, memory and CPU of the recorder: --processes N (200), --seconds S (30)
processes=200 seconds=30
while [ $# -gt 0 ]; do
	case $1 in
	--processes) processes=$2 ;;
	--seconds) seconds=$2 ;;
	*) die "many takes --processes and --seconds" ;;
	esac
	shift 2
done
build dissect
need dotnet
need jq
mkdir -p "$out/managed"
app=$out/managed/bin/managed/release/Managed.dll
[ "$app" -nt tests/feature/programs/managed/Program.cs ] ||
	dotnet build tests/feature/programs/managed -c Release --artifacts-path "$out/managed" -v quiet -nodeReuse:false -p:UseSharedCompilation=false \
		>"$out/managed/build.log" 2>&1 || die "the small app could not be built: $out/managed/build.log"
# Many processes of one small program, which sleeps and computes in turn. Their heaps are small and have no background work.
export DOTNET_gcServer=0 DOTNET_gcConcurrent=0 DOTNET_GCHeapHardLimit=0x2000000 DOTNET_TieredPGO=0
: >"$out/many.ready"
for i in $(seq "$processes"); do
	start dotnet "$app" naps $((seconds * 1000 + 600000)) >>"$out/many.ready"
	# Not all at the same time: two CPUs start about twenty a second.
	[ $((i % 10)) != 0 ] || until [ "$(grep -c ready "$out/many.ready")" -ge $((i - 4)) ]; do sleep 0.05; done
done
until [ "$(grep -c ready "$out/many.ready")" -ge "$processes" ]; do sleep 0.1; done
sleep 2
echo "$processes processes run; load $(cut -d' ' -f1 /proc/loadavg)"

value() {
	sed -n "s/^$2:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$1/status" 2>/dev/null
}
# The names of a process are known at the time of its Runtime event in the file.
rm -f "$out/many.nettrace" "$out"/many.cost
most=0
"$out/cputime" "$out/many.cost" "$spoor" record -a -F 99 --duration "${seconds}s" -o "$out/many.nettrace" 2>"$out/many.log" &
timer=$!
started+=("$timer")
child_of() {
	pgrep -P "$1" -x "$2" | head -n 1 || :
}
recorder=
for _ in $(seq 100); do
	recorder=$(child_of "$timer" spoor)
	[ -z "$recorder" ] || break
	sleep 0.05
done
[ -n "$recorder" ] || die "the recorder does not start"
guard_most=0
while kill -0 "$recorder" 2>/dev/null; do
	now=$(value "$recorder" VmRSS || :)
	[ "${now:-0}" -le "$most" ] || most=$now
	guard=$(child_of "$recorder" spoor-guard)
	now=$(value "${guard:-0}" VmRSS || :)
	[ "${now:-0}" -le "$guard_most" ] || guard_most=$now
	sleep 0.2
done
wait "$timer" || die "the recording failed: $(tail -n 3 "$out/many.log")"
cat "$out/many.log"
"$spoor" report --json "$out/many.nettrace" >"$out/many.json"
opened=$(jq '[.sessions[] | select(any(.opened[]; test("rundown")))] | length' "$out/many.json")
printf '%s\n' "${started[@]}" | sort >"$out/many.pids"
"$out/dissect" "$out/many.nettrace" | awk '$1 == "runtime" && $3 == "reachable" { print $4, $2 }' | sort >"$out/many.named"
# Only the processes of the benchmark, not others on this machine.
times=$(join "$out/many.pids" "$out/many.named" | cut -d' ' -f2 | sort -g)
known=$(join "$out/many.pids" "$out/many.named" | cut -d' ' -f1 | sort -u | wc -l)
longest=$(echo "$times" | tail -n 1)
half=$(echo "$times" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
echo "names of $known processes known ($opened with a rundown), the last after $longest s, half of them after $half s"
echo "recorder at most $most kB, $(column many 1) s of CPU in ${seconds} s; guard at most $guard_most kB"
lost=$(jq .lost "$out/many.json")
echo "lost $lost samples; file $(stat -c %s "$out/many.nettrace") bytes"
[ "$known" -ge "$processes" ] || echo "NOT ALL NAMED: $((processes - known)) are missing"
rm -f "$out/many.nettrace"
ratio many-seconds-until-all-named "$longest" 10
ratio many-recorder-kb "$most" 65536
