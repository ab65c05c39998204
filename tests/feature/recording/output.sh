#!/bin/sh
# spoor record where the recording cannot be written, or not to its end: one message, and the part that was written can be read.
. "$(dirname "$(realpath "$0")")/../prelude"

disk=$scratch/disk
clean_up_more() {
	umount "$disk" 2>/dev/null
}

# opens_whole FILE: the file can be read without a message about a missing end.
opens_whole() {
	code_of "$spoor" report --json "$1"
	expect_code 0 "report of $1"
	has_no err 'cannot'
}

code_of "$spoor" record -q --duration 100s -o /dev/full -- "$target" spin 500
expect_code 1 "a full device"
has err "^cannot write '/dev/full': No space left on device\.\$"
[ "$(wc -l <err)" -le 2 ] || fail "more than a sentence and a remedy"
[ -c /dev/full ] || fail "/dev/full is gone"

code_of "$spoor" record -q --duration 100s -o . -- "$target" spin 500
expect_code 1 "a folder"
has err "^cannot write '\.': Is a directory\.\$"

# A reader that closes the pipe ends the recording. spoor waits for the command, and fails.
: >err
{
	timeout 100 "$spoor" record -q -F 999 -o - -- "$target" spin 3000 2>err
	echo $? >code
} | head -c 1000 >/dev/null
[ "$(cat code)" = 1 ] || fail "exit code $(cat code) when the reader goes away"
has err "^cannot write 'standard output': Broken pipe"

# The limit of file sizes ends the recording like a full disk, with room for its last blocks. An idle machine would not reach it, so a program computes.
start burner "$target" spin 600000
(
	ulimit -f 400
	timeout 120 "$spoor" record -q -p $burner -F 9999 -o limited.nettrace --duration 110s 2>err
	echo $? >code
)
[ "$(cat code)" = 1 ] || fail "exit code $(cat code) at the limit of file sizes"
has err 'limit of file sizes'
opens_whole limited.nettrace
kill $burner

# A pipe that ends early: the report shows the samples before the end, and names the offset.
"$spoor" record -q -F 999 -o whole -- "$target" spin 1500 || fail "a whole recording"
size=$(($(wc -c <whole) - 700))
head -c $size whole | "$spoor" report - >out 2>err || fail "report of a torn pipe"
has out 'spin_here'
cat out err >both
has both "^cannot read 'standard input' beyond offset [0-9]+: it ends"

is_root || skip "a small file system is mounted by root only; the rest holds"
mkdir "$disk"
mount -t tmpfs -o size=2m none "$disk" 2>/dev/null || skip "no tmpfs can be mounted here; the rest holds"
mkdir fill
for i in $(seq 60); do # distinct names, so that the recording grows
	cp "$target" "fill/p$i"
done
# The recording ends before the disk is full: 5 % stay free, and the file is complete. Half a second of this load takes 0.3 MB and more, packed a fifth.
start load "$target" churn 100000000 2 fill/p*
for file in x.nettrace x.nettrace.zst; do
	left='105 kB'
	[ $file = x.nettrace ] || { mount -o remount,size=512k "$disk" && left='26\.2 kB'; } || fail "the disk can't be made smaller"
	code_of timeout 200 "$spoor" record -q -F 999 -p "$load" -o "$disk/$file"
	expect_code 1 "a disk that fills up ($file)"
	has err "^the recording was ended: the disk is nearly full, and the last $left of it stay free\.\$"
	[ "$(stat -f -c '%a * %S' "$disk" | xargs expr)" -gt 26000 ] || fail "the disk was filled"
	code_of "$spoor" report --json "$disk/$file"
	expect_code 0 "report of $file"
	json out '.recording.complete'
	[ "$(value out .samples)" -gt 100 ] || fail "only $(value out .samples) samples were written before"
	json out 'any(.processes[].functions[]; .name | test("^spin_(here|[0-4])$"))'
	rm "$disk/$file"
done

# Another program fills the disk: the data that was written before can be read.
has_samples() {
	"$spoor" report --json "$1" >flushed.json && [ "$(value flushed.json .samples)" -gt 50 ]
}
for file in x.nettrace x.nettrace.zst; do
	start recorder "$spoor" record -q -F 999 --duration 100s -p "$load" -o "$disk/$file" 2>err
	until_true has_samples "$disk/$file" || fail "no flush of $file"
	dd if=/dev/zero of="$disk/fill" bs=1k count=600 2>/dev/null
	wait "$recorder" && fail "exit code 0 on a disk that others have filled"
	grep -qE 'No space left on device|the disk is nearly full' err || fail "the reason is not printed"
	opens_whole "$disk/$file"
	[ "$(value out .samples)" -gt 50 ] || fail "only $(value out .samples) samples were written before"
	rm "$disk/$file" "$disk/fill"
done
kill -9 "$load"

# Full from the beginning: no file is left.
dd if=/dev/zero of="$disk/fill" bs=1k count=600 2>/dev/null
code_of "$spoor" record -q -o "$disk/x.nettrace" -- "$target" spin 300
expect_code 1 "a full disk"
has err "^cannot write '.*/disk/x.nettrace': its disk is nearly full, and the last 26\.2 kB of it stay free\.\$"
[ ! -e "$disk/x.nettrace" ] || fail "an empty file is left behind"
rm -f "$disk"/*

mount -o remount,ro "$disk"
code_of "$spoor" record -q -o "$disk/x.nettrace" -- "$target" spin 300
expect_code 1 "a read-only folder"
has err "^cannot write '.*/disk/x.nettrace': Read-only file system\.\$"
has err '^choose another place with -o FILE\.$'
exit 0
