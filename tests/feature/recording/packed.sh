#!/bin/sh
# spoor record -z writes what zstd and every verb can read: after a normal end, through a pipe, and after SIGKILL at any time.
. "$(dirname "$(realpath "$0")")/../prelude"
command -v zstd >/dev/null || skip "zstd is not installed"

whole() {
	rm -f unpacked.nettrace
	zstd -q -d "$1" -o unpacked.nettrace 2>err || fail "zstd -d $1: $(head -n 1 err)"
	for form in "$1" unpacked.nettrace; do
		code_of "$spoor" report --json "$form"
		expect_code 0 "report of $form"
		has_no err 'cannot'
		mv out "out.${form##*.}"
	done
}

# By the name of the file, and by option. The file ends with its last block.
"$spoor" record -q -F 999 -o a.zst -- "$target" spin 800 || fail "-o a.zst"
"$spoor" record -q -F 999 -z -o b.nettrace -- "$target" spin 800 || fail "-z -o b.nettrace"
mv b.nettrace b.zst
for file in a.zst b.zst; do
	whole $file
	json out.zst '.recording.complete'
	json out.zst 'any(.processes[].functions[]; .name == "spin_here")'
	cmp -s out.zst out.nettrace || [ "$(value out.zst .samples)" = "$(value out.nettrace .samples)" ] || fail "$file unpacked is another file"
	[ "$(stat -c %s $file)" -lt "$(stat -c %s unpacked.nettrace)" ] || fail "$file is no smaller than what is in it"
	tail -c 7 $file | od -An -tx1 | grep -q '21 00 00 00 00 00 00' || fail "$file does not end with its last block"
done
code_of "$spoor" flame a.zst -f folded -o -
has out 'spin_here'
"$spoor" record -q -z -- "$target" spin 200 || fail "-z without a name"
ls target_*.nettrace.zst >/dev/null || fail "the default name does not end in .nettrace.zst"

# Through a pipe, and with the end cut off.
"$spoor" record -q -F 999 -z -o - -- "$target" spin 800 | cat >pipe.zst || fail "-z -o -"
whole pipe.zst
json out.zst '.recording.complete'
"$spoor" report - <pipe.zst >out || fail "report - of a packed recording"
has out 'spin_here'
head -c $(($(stat -c %s pipe.zst) * 2 / 3)) pipe.zst >torn.zst
"$spoor" report torn.zst >out 2>err
cat out err >both
has both "^cannot unpack 'torn.zst' beyond offset [0-9]+: it ends there, in the middle"

# Killed at different times after the start.
mkdir fill
for i in $(seq 20); do # distinct names, so that the recording grows
	cp "$target" "fill/p$i"
done
# recorded COUNT: the recording, which is still written, has so many samples.
recorded() {
	"$spoor" report --json k.zst >now.json 2>/dev/null && [ "$(value now.json .samples)" -ge "$1" ]
}
# In the last round the kill waits for samples, which a busy machine may not have taken in the others.
for round in 1 2 3 4 5 6 7 8 9 10 11; do
	rm -f k.zst
	start load "$target" churn 100000000 2 fill/p*
	start recorder "$spoor" record -q -F 4999 -z -p "$load" -o k.zst 2>killed.err
	until_true test -s k.zst || fail "nothing written: $(cat killed.err)"
	if [ $round = 11 ]; then
		until_true recorded 300 || fail "no 300 samples in a recording: $(cat killed.err)"
	else
		sleep "$((round / 8)).$(((round * 130 + 400) % 1000 / 100))$((round % 10))"
	fi
	kill -9 "$recorder" && wait "$recorder" 2>/dev/null
	kill -9 "$load" 2>/dev/null
	whole k.zst
done
json out.zst '.samples >= 300'
exit 0
