#!/bin/sh
# soak.sh [DURATION [SPOOR]]: records the whole machine at 99 Hz beside a load that starts and ends 50 processes a second, and beside .NET programs where there
# is an SDK. The recorder's memory does not grow, lost samples are counted, and the file is complete.
#
#   tests/soak.sh            an hour, with build/spoor
#   tests/soak.sh 15m        SECONDS, or with s, m or h after the number
#
# SPOOR_SOAK_KEEP names a file to keep the recording in.
#
# A second recording, packed, has only short processes, some hundred a second. Its memory does not grow with the number of processes that have ended.
#
# The programs run with nice. The samples of a program that computes all the time are compared with its CPU time in /proc, so samples that are lost and not counted are found.
case ${1:-1h} in
*[!0-9smh]* | *[smh]?* | [smh]*)
	sed -n '2,8p' "$0" >&2
	exit 2
	;;
*h) seconds=$((${1%h} * 3600)) ;;
*m) seconds=$((${1%m} * 60)) ;;
*) seconds=${1%s} ;;
esac
[ $# -ge 1 ] || seconds=3600
if [ "$seconds" -lt 10 ]; then
	echo "soak.sh: at least 10 seconds" >&2
	exit 2
fi
top=$(cd "$(dirname "$(realpath "$0")")/.." && pwd)
set -- "${2:-$top/build/spoor}"
here=$top/tests/feature # not where this script stands
. "$top/tests/feature/prelude"
is_root || skip "the whole machine is recorded: run it as root"

# own_kb PID: the memory that only the process's end gives back. VmRSS has the pages of its program, of libraries and of symbol files as well, as many as the kernel likes to keep.
own_kb() {
	sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2>/dev/null
}

ticks() {
	sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

stolen_ticks() {
	awk '$1 == "cpu" { print $9 + 0 }' /proc/stat
}

# The load: 50 programs a second while the file `going` exists. Each uses two milliseconds.
for i in 0 1 2 3 4; do
	cp "$target" "p$i"
done
touch going
churn() {
	count=0
	while [ -e going ]; do
		for i in 0 1 2 3 4; do
			"./p$i" spin 2 >/dev/null &
		done
		count=$((count + 5))
		echo $count >churned.new && mv churned.new churned
		sleep 0.1
		wait
	done
}
# .NET programs: one that computes all the time, and others that end after three seconds.
managed() {
	while [ -e going ]; do
		nice -n 19 dotnet "$app" burn 3000 >/dev/null
		sleep 2
	done
}

# Short processes, as many as the machine starts. The second recorder records only these, so only ended processes can make its memory grow.
start storm nice -n 19 "$target" churn 100000000 2 ./p0 ./p1 ./p2 ./p3 ./p4
start packer "$spoor" record -q -z -F 997 -p $storm -o storm.nettrace.zst

start spinner nice -n 19 "$target" spin $(((seconds + 60) * 1000))
rm -f x.nettrace
start recorder "$spoor" record -q -a -F 99 -o x.nettrace
until_true test -s x.nettrace || fail "no file appears"
clean_up_more() {
	rm -f "$scratch/going" # ends churn and managed
}
(churn) &
churning=$!
managing=''
if (. "$here/programs/managed/prelude") >managed.out 2>&1; then
	app=$("$top/scripts/test-programs" managed)
	start burner nice -n 19 dotnet "$app" burn $((seconds * 1000 + 60000))
	(managed) &
	managing=$!
else
	head -n 1 managed.out
fi >managed.log
[ -n "$managing" ] || cat managed.log
sleep 1
begin_ticks=$(ticks $spinner)
begin_stolen=$(stolen_ticks)
begin_file=$(stat -c %s x.nettrace)
began=$(date +%s)
next=$seconds
step=$((seconds / 60 > 0 ? seconds / 60 : 1))
: >memory
while [ $(($(date +%s) - began)) -lt "$next" ]; do
	sleep $step
	kill -0 $recorder 2>/dev/null || fail "the recorder has ended"
	guard=$(pgrep -P $recorder -x spoor-guard)
	kill -0 $packer 2>/dev/null || fail "the packed recording has ended"
	echo "$(($(date +%s) - began)) $(own_kb $recorder) $(find /proc/$recorder/fd -mindepth 1 | wc -l) $(own_kb "${guard:-0}") $(own_kb $packer)" >>memory
done
end_ticks=$(ticks $spinner)
stolen_ms=$((($(stolen_ticks) - begin_stolen) * 1000 / $(getconf CLK_TCK)))
elapsed=$(($(date +%s) - began))
size=$(($(stat -c %s x.nettrace) - begin_file))
guard=$(pgrep -P $recorder -x spoor-guard)
kill -INT $recorder
wait $recorder && code=0 || code=$?
[ $code = 0 ] || fail "the recording ends with code $code"
kill -INT $packer
wait $packer && code=0 || code=$?
[ $code = 0 ] || fail "the packed recording ends with code $code"
kill $storm
wait $storm 2>/dev/null
[ -z "${SPOOR_SOAK_KEEP:-}" ] || cp x.nettrace "$SPOOR_SOAK_KEEP"
rm going
for each in $churning $managing; do
	wait "$each"
done
[ -z "$guard" ] || ! kill -0 "$guard" 2>/dev/null || fail "the guard stays"

# median FROM TO COLUMN: of the lines of `memory` between two shares of the time.
median() {
	awk -v from="$1" -v to="$2" -v column="$3" -v all="$elapsed" '$1 >= from * all && $1 <= to * all { print $column + 0 }' memory | sort -n |
		awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : 0 }'
}
# fewest FROM TO COLUMN: likewise.
fewest() {
	awk -v from="$1" -v to="$2" -v column="$3" -v all="$elapsed" '$1 >= from * all && $1 <= to * all { print $column + 0 }' memory | sort -n | head -n 1
}
early=$(median 0.25 0.5 2)
late=$(median 0.75 1 2)
most=$(cut -d' ' -f2 memory | sort -n | tail -n 1)
# The fewest descriptors, because each .NET program that runs takes some.
early_fds=$(fewest 0.25 0.5 3)
late_fds=$(fewest 0.75 1 3)
churned=$(cat churned)
"$spoor" events storm.nettrace.zst 2>err | grep -c 'Universal\.System/ProcessExit' >ended || fail "the packed file does not open: $(cat err)"
stormed=$(cat ended)
storm_early=$(median 0.25 0.5 5)
storm_late=$(median 0.75 1 5)
"$spoor" report --json x.nettrace >json 2>err || fail "the file does not open"
samples=$(value json .samples)
lost=$(value json .lost)
# The recording ran a little longer than the ticks were counted, by its begin and end; the spinner by as much.
"$spoor" report --json -p $spinner x.nettrace >json.spinner 2>err || fail "no report of the program that computes"
cpu_ms=$(($(value json.spinner .selected_cpu_ns) / 1000000))
kernel_ms=$(((end_ticks - begin_ticks) * 1000 / $(getconf CLK_TCK)))
echo "$elapsed s: $churned processes ($((churned / elapsed)) a second), $samples samples, $lost lost, $((size / elapsed)) bytes a second"
echo "memory $early kB in the second quarter, $late kB in the last, $most kB at most; descriptors $early_fds and $late_fds; guard $(median 0.5 1 4) kB"
echo "packed, of a storm: $stormed processes ended, $storm_early kB in the second quarter, $storm_late kB in the last"
echo "a program that computes: $cpu_ms ms by its samples, $kernel_ms ms by the kernel while it was looked at"
json json '.recording.complete and .lost_exact'
[ "$churned" -ge $((elapsed * 25)) ] || echo "the machine is too busy for 50 processes a second"
if ! is_sanitized; then
	# The bounds are for memory of their own. Without a reading they would hold, too.
	[ "$early" -gt 0 ] && [ "$storm_early" -gt 0 ] || fail "the memory could not be read"
	[ "$most" -lt 57344 ] || fail "the recorder takes $most kB"
	# Tables still fill in the first minutes: 50,000 ended processes take 8 MB more than 1,000 do, and stay below 19 MB.
	slack=2048
	[ "$elapsed" -ge 900 ] || slack=6144
	[ "$storm_late" -le $((storm_early + slack + stormed / 16)) ] || fail "the packed recording of $stormed processes grows from $storm_early kB to $storm_late kB"
	[ "$storm_late" -lt 22528 ] || fail "the packed recording takes $storm_late kB"
	[ "$late" -le $((early + early / 10 + slack)) ] || fail "its memory grows from $early kB to $late kB"
fi
# Files of symbols stay open, up to a limit; other .NET processes of the machine take some, too.
[ "$late_fds" -le 128 ] || fail "it has $late_fds descriptors"
[ "$elapsed" -lt 900 ] || [ "$late_fds" -le $((early_fds + 4)) ] || fail "its descriptors grow from $early_fds to $late_fds"
# Two seconds of slack for begin and end, 3 % for sampling, and the time that the host of a virtual machine has taken: there are no samples in it.
if [ "$lost" = 0 ]; then
	[ $((cpu_ms + 2000 + stolen_ms)) -ge $((kernel_ms * 97 / 100)) ] || fail "samples are missing that nobody counted"
fi
[ $cpu_ms -le $((kernel_ms * 103 / 100 + 5000)) ] || fail "more samples than CPU time"
for i in 0 1 2 3 4; do
	"$spoor" flame -n "p$i" x.nettrace -f folded -o - 2>/dev/null | grep -q ";spin_$i" || fail "no names of p$i"
done
exit 0
