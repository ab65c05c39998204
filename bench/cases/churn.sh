# the recorder's own CPU beside short processes, as on a build machine: --processes N a second (100), --rounds N (5), --seconds S (6), --rate HZ (99)
processes=100 rounds=5 seconds=6 rate=99
while [ $# -gt 0 ]; do
	case $1 in
	--processes) processes=$2 ;;
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--rate) rate=$2 ;;
	*) die "churn takes --processes, --rounds, --seconds and --rate" ;;
	esac
	shift 2
done
need gcc
build churn
rm -f "$out"/churn-*
# The compiler is three processes: gcc, cc1 and as.
echo 'int main(void) { return 0; }' >"$out/churn-source.c"
start "$out/churn" "$(awk -v n="$processes" 'BEGIN { print n / 3 }')" gcc -c -o /dev/null "$out/churn-source.c" 2>"$out/churn-gcc.log"
sleep 1
kill -0 "$last" 2>/dev/null || die "the compiler does not run"

# forks: the processes and threads that the machine has started so far.
forks() {
	awk '$1 == "processes" { print $2 }' /proc/stat
}

# perf 6.1 aborts ("stack smashing detected") when another program records at the same time and requests build ids, as Spoor does. Inferred from one aborted file: the kernel then marks
# perf's records of mappings as having a build id too, but they have the device's number in that place. With --buildid-mmap perf requests build ids itself;
# it saves the pass over its file at the end.
aborted=0
before=$(forks)
begin=$(date +%s)
for _ in $(seq "$rounds"); do
	cost churn-spoor "$spoor" record -a -F "$rate" --no-dotnet --duration "${seconds}s" -o "$out/churn.nettrace"
	if "$out/cputime" "$out/cost" "$perf" record -a -g -F "$rate" -o "$out/churn.data" -- sleep "$seconds" 2>"$out/churn-perf.log"; then
		cat "$out/cost" >>"$out/churn-perf.cost"
	else
		aborted=$((aborted + 1))
	fi
	rm -f "$out/cost"
	cost churn-spoor-no-names "$spoor" record -a -F "$rate" --no-symbols --no-dotnet --duration "${seconds}s" -o "$out/churn.nettrace"
	cost churn-perf-build-ids "$perf" record -a -g --buildid-mmap -F "$rate" -o "$out/churn.data" -- sleep "$seconds"
done
echo "$((($(forks) - before) / ($(date +%s) - begin))) processes and threads started a second; perf record aborted $aborted times of $rounds"
stop "$last"
for name in spoor spoor-no-names perf-build-ids perf; do
	[ ! -s "$out/churn-$name.cost" ] || show "churn-$name"
done
tail -n 3 "$out/churn-spoor.log"
rm -f "$out/churn.nettrace" "$out"/churn.data*
ratio churn-cpu-s-build-ids "$(column churn-spoor 1)" "$(column churn-perf-build-ids 1)"
[ ! -s "$out/churn-perf.cost" ] || ratio churn-cpu-s "$(column churn-spoor 1)" "$(column churn-perf 1)"
