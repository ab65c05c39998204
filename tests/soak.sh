#!/bin/sh
# soak.sh [DURATION [SPOOR]]: a recording of the whole machine at 99 Hz beside a load that starts and ends 50 processes a second, and .NET programs that
# come and go where there is an SDK. Does the recorder's memory stay flat, is nothing lost or all of it counted, is the file whole?
#
#   tests/soak.sh            an hour, with build/spoor
#   tests/soak.sh 15m        SECONDS, or with s, m or h behind the number
#
# SPOOR_SOAK_KEEP names a file to keep the recording in.
#
# Beside it a second recording, packed, of a storm of processes: some hundred a second, of nothing else. Its memory does not grow with the number of processes that have ended.
#
# What computes is nice to its neighbours. What is lost uncounted shows in a program that computes all the time: its samples stand for its CPU time by the kernel's own count.
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
. "$top/tests/kernel/prelude"
here=$top/tests/kernel # not where this script stands
is_root || skip "the whole machine is recorded: run it as root"

value() {
	sed -n "s/^$2:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$1/status" 2>/dev/null
}

ticks() {
	sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# The load: 50 programs a second for as long as the file `going` is there, each computes two milliseconds.
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
# .NET programs: one that computes all the time, and one after the other that lives three seconds.
managed() {
	while [ -e going ]; do
		nice -n 19 dotnet "$app" burn 3000 >/dev/null
		sleep 2
	done
}

# The storm: as many as the machine starts. Its recorder records nothing else, so that only processes that end can make its memory grow.
start storm nice -n 19 "$target" churn 100000000 2 ./p0 ./p1 ./p2 ./p3 ./p4
start packer "$spoor" record -q -z -F 997 -p $storm -o storm.nettrace.zst

start spinner nice -n 19 "$target" spin $(((seconds + 60) * 1000))
rm -f x.nettrace
start recorder "$spoor" record -q -a -F 99 -o x.nettrace
until_true test -s x.nettrace || fail "no file appears"
(churn) &
churning=$!
managing=''
if (. "$here/managed/prelude") >managed.out 2>&1; then
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
	echo "$(($(date +%s) - began)) $(value $recorder VmRSS) $(find /proc/$recorder/fd -mindepth 1 | wc -l) $(value "${guard:-0}" VmRSS) $(value $packer VmRSS)" >>memory
done
end_ticks=$(ticks $spinner)
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
# Of descriptors the fewest: each .NET program that runs right then has some.
early_fds=$(fewest 0.25 0.5 3)
late_fds=$(fewest 0.75 1 3)
churned=$(cat churned)
"$spoor" events storm.nettrace.zst 2>err | grep -c 'Universal\.System/ProcessExit' >ended || fail "the packed file does not open: $(cat err)"
stormed=$(cat ended)
storm_early=$(median 0.25 0.5 5)
storm_late=$(median 0.75 1 5)
"$spoor" report --json x.nettrace >json 2>err || fail "the file does not open"
samples=$(number json samples)
lost=$(number json lost)
# The recording ran a little longer than the ticks were counted, by its begin and end; the spinner by as much.
"$spoor" report --json -p $spinner x.nettrace >json.spinner 2>err || fail "no report of the program that computes"
cpu_ms=$(($(number json.spinner selected_cpu_ns) / 1000000))
kernel_ms=$(((end_ticks - begin_ticks) * 1000 / $(getconf CLK_TCK)))
echo "$elapsed s: $churned processes ($((churned / elapsed)) a second), $samples samples, $lost lost, $((size / elapsed)) bytes a second"
echo "memory $early kB in the second quarter, $late kB in the last, $most kB at most; descriptors $early_fds and $late_fds; guard $(median 0.5 1 4) kB"
echo "packed, of a storm: $stormed processes ended, $storm_early kB in the second quarter, $storm_late kB in the last"
echo "a program that computes: $cpu_ms ms by its samples, $kernel_ms ms by the kernel while it was looked at"
has json '"complete":true'
has json '"lost_exact":true'
[ "$churned" -ge $((elapsed * 25)) ] || echo "the machine is too busy for 50 processes a second"
if ! is_sanitized; then
	[ "$most" -lt 65536 ] || fail "the recorder takes $most kB"
	# Half of them ended between the two: half a kilobyte each would be more than this.
	[ "$storm_late" -le $((storm_early + 2048 + stormed / 6)) ] || fail "the packed recording of $stormed processes grows from $storm_early kB to $storm_late kB"
	[ "$storm_late" -lt 49152 ] || fail "the packed recording takes $storm_late kB"
	[ "$late" -le $((early + early / 10 + 2048)) ] || fail "its memory grows from $early kB to $late kB"
fi
# Images that are looked into for the first time stay open, up to some number.
[ "$late_fds" -le 96 ] || fail "it has $late_fds descriptors"
[ "$elapsed" -lt 900 ] || [ "$late_fds" -le $((early_fds + 4)) ] || fail "its descriptors grow from $early_fds to $late_fds"
# Two seconds of slack for begin and end, 3 % for sampling and what was lost and counted.
if [ "$lost" = 0 ]; then
	[ $((cpu_ms + 2000)) -ge $((kernel_ms * 97 / 100)) ] || fail "samples are missing that nobody counted"
fi
[ $cpu_ms -le $((kernel_ms * 103 / 100 + 5000)) ] || fail "more samples than CPU time"
for i in 0 1 2 3 4; do
	"$spoor" flame -n "p$i" x.nettrace -f folded -o - 2>/dev/null | grep -q ";spin_$i" || fail "no names of p$i"
done
exit 0
