#!/bin/sh
# Many processes and threads that start and end: each has its right name, and the recorder's memory does not grow with their number.
. "$(dirname "$(realpath "$0")")/../prelude"

limit_kb=65536
# Without the pages of files, which the kernel keeps as long as it likes.
resident() {
	sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$1/status" 2>/dev/null
}

for i in 0 1 2 3 4; do
	cp "$target" "p$i"
done

# A recording of the whole machine where rights allow it, else of the command. (Without the sessions that it would open in the programs of other tests.)
if is_root; then
	start recorder "$spoor" record -q -a --no-dotnet -F 997 -o x.nettrace
	until_true test -s x.nettrace || fail "no file appears"
	start churn "$target" churn 1000 2 ./p0 ./p1 ./p2 ./p3 ./p4
else
	start recorder "$spoor" record -q -F 997 -o x.nettrace -- "$target" churn 1000 2 ./p0 ./p1 ./p2 ./p3 ./p4
	churn=$recorder
fi
# watch_memory PID FILE: writes the resident kB of the recorder to FILE until the process has ended.
watch_memory() {
	: >"$2"
	while ! ended_process "$1"; do
		resident "$recorder" >>"$2"
		sleep 0.1
	done
	is_sanitized || [ -s "$2" ] || fail "the recorder's memory could not be read"
}
watch_memory "$churn" memory
if [ "$recorder" != "$churn" ]; then
	wait "$churn" || fail "the churn failed"
	kill -INT "$recorder"
fi
wait "$recorder" && code=0 || code=$?
expect_code 0 "recording of 1,000 processes"
folded x.nettrace x.folded
for i in 0 1 2 3 4; do
	count=$(frames x.folded "^p$i;.*;spin_$i[; ]")
	[ "$count" -gt 100 ] || fail "p$i computed in spin_$i, but only $count samples say so"
done
grep -E '^p[0-4];.*spin_[0-4]' x.folded | grep -vE '^p0;.*spin_0|^p1;.*spin_1|^p2;.*spin_2|^p3;.*spin_3|^p4;.*spin_4' >wrong
[ ! -s wrong ] || fail "wrong names: $(head -n 3 wrong)"
is_sanitized || [ "$(sort -n memory | tail -n 1)" -lt $limit_kb ] || fail "the recorder takes $(sort -n memory | tail -n 1) kB"

# One process with its children, beside a process that starts the same programs: the recording has its children and no others.
for i in 0 1 2 3 4; do
	cp "$target" "other$i"
done
mkfifo go
start ours sh -c 'read word <go; exec "$@"' sh "$target" churn 2000 2 ./p0 ./p1 ./p2 ./p3 ./p4
start others "$target" churn 100000000 1 ./other0 ./other1 ./other2 ./other3 ./other4
start recorder "$spoor" record -v -F 997 -p "$ours" -o x.nettrace 2>err
until_true grep -q '^recording' err || fail "it does not begin: $(cat err)"
echo >go
watch_memory "$ours" memory
wait "$recorder" && code=0 || code=$?
kill "$others"
expect_code 0 "recording of a process that starts 2,000"
# The memory does not depend on other programs here. A process takes some 5 kB, so 1,200 processes that were not freed would be 6 MB.
if ! is_sanitized; then
	early=$(sed -n "$(($(wc -l <memory) * 2 / 5 + 1))p" memory)
	late=$(tail -n 1 memory)
	echo "memory: $early kB after two fifths of the processes, $late kB after all of them"
	[ "$late" -lt $((early + early / 8 + 2048)) ] || fail "the recorder grew from $early kB to $late kB"
fi
if is_root; then
	has err '^rings .* of whole CPUs, of which other processes'
fi
folded x.nettrace x.folded
for i in 0 1 2 3 4; do
	count=$(frames x.folded "^p$i;.*;spin_$i[; ]")
	[ "$count" -gt 20 ] || fail "p$i, which the recorded process starts, has $count samples"
done
grep -vE '^(sh|target|p[0-4]);' x.folded >wrong || true
[ ! -s wrong ] || fail "others are in the file: $(head -n 3 wrong)"
code_of "$spoor" report x.nettrace
has out ' samples, nothing lost'

# Threads that start and end.
code_of "$spoor" record -q -F 997 -o x.nettrace -- "$target" thread-churn 1000
expect_code 0 "threads that come and go"
folded x.nettrace x.folded
count=$(frames x.folded '^target;.*;spin_here[; ]')
[ "$count" -gt 200 ] || fail "of about 1000 samples of threads $count have their name"

# 5,000 threads, 10,000 executable mappings, by a new start and by -p.
code_of "$spoor" record -q -F 499 -o x.nettrace -- "$target" threads 5000 700
if grep -q pthread_create err; then
	echo "5,000 threads cannot be made here"
else
	expect_code 0 "5,000 threads"
	folded x.nettrace x.folded
	has x.folded '^target;.*;spin_here '
	"$target" threads 5000 600000 >ready &
	many=$!
	started="$started $many"
	until_true test -s ready || fail "5,000 threads do not start"
	record_until 1 '^target;.*;spin_here ' -F 499 -p $many
	if is_root; then
		expect_code 0 "-p of 5,000 threads"
		has x.folded '^target;.*;spin_here '
		has_no x.folded '^[^t]'
	else
		expect_code 1 "-p of 5,000 threads without rights"
		has err '^cannot record 500[0-9] threads on [0-9]+ CPUs'
	fi
	kill -9 $many
fi
if [ "$(cat /proc/sys/vm/max_map_count)" -gt 10500 ]; then
	code_of "$spoor" record -q -F 499 -o x.nettrace -- "$target" mappings 10000 "$target" 500
	expect_code 0 "10,000 mappings"
	folded x.nettrace x.folded
	has x.folded '^target;.*;spin_here '
	"$target" mappings 10000 "$target" 600000 >ready &
	many=$!
	started="$started $many"
	until_true grep -q mappings ready || fail "10,000 mappings are not made"
	record_until 1 '^target;.*;spin_here ' -F 499 -p $many
	expect_code 0 "-p of 10,000 mappings"
	has x.folded '^target;.*;spin_here '
fi
exit 0
