#!/bin/sh
# Hostile files of targets: a program file that was replaced, and perf maps of other users. spoor does not wait, crash or print a wrong name.
. "$(dirname "$(realpath "$0")")/../prelude"

hostile=$(dirname "$target")/hostile
skipped=''

record_it() {
	record_until 50 . -F 999 -p "$1"
	expect_code 0 "recording $2"
}

# ---- the program's file is replaced while the program runs ----

put_other() { cp "$(dirname "$target")/target_reversed" new; }
put_pipe() { mkfifo new; }
put_link() { ln -s /proc/self/environ new; }
put_kernel() { ln -s /sys/kernel/mm/transparent_hugepage/enabled new; }
put_sparse() { truncate -s 100G new 2>/dev/null; }
put_device() { mknod new c 1 5; }
put_nothing() { : >new; }

for kind in other pipe link kernel sparse device nothing; do
	cp "$target" program
	start spinning ./program spin 600000
	until_true grep -q "$scratch/program" "/proc/$spinning/maps" || fail "the program does not start"
	if put_$kind 2>/dev/null; then
		mv -f new program
		[ $kind != nothing ] || rm program
		record_it $spinning "a program replaced by $kind"
		# Names come from the mapped file where rights allow to open it, else there are none. They never come from the new file.
		if is_root; then
			[ "$(frames x.folded ';spin_here$|;spin_here ')" -ge 15 ] || [ "$(frames x.folded 'spin_here')" -ge 15 ] ||
				fail "a program replaced by $kind: $(frames x.folded spin_here) named samples"
		else
			has_no x.folded 'spin_[0-4]'
		fi
	else
		skipped="$skipped; no $kind can be made here"
	fi
	kill -9 $spinning 2>/dev/null
	rm -f new program
done

# ---- a kernel without openat2 ----

"$target" spin 600000 &
spinning=$!
started="$started $spinning"
if "$hostile" old-kernel true; then
	code_of timeout 100 "$hostile" old-kernel "$spoor" record -q -F 999 -p $spinning --duration 400ms -o x.nettrace
	expect_code 0 "recording without openat2"
	"$spoor" report x.nettrace >out 2>err || fail "report"
	[ "$(grep -c 'files of targets were skipped' out)" = 1 ] || fail "the skipped files are not reported exactly once"
	"$spoor" report --json x.nettrace >out || fail "report --json"
	json out 'any(.notices[]; tostring | test("openat2"))'
else
	skipped="$skipped; no seccomp filter can be set here"
fi
record_it $spinning "with openat2"
"$spoor" report x.nettrace >out
has_no out 'skipped'
kill -9 $spinning

# ---- perf maps ----

# map NAME: records a program that has generated code; map_NAME makes its perf map. The samples are in x.folded.
map() {
	rm -f line
	mkfifo feed
	exec 9<>feed # both ends, because an open of one end would wait for the other
	rm feed
	"$hostile" jit 600000 <&9 >line 2>err &
	jit=$!
	started="$started $jit"
	line_or_end() { grep -q . line || ended_process $jit; }
	until_true line_or_end
	grep -q . line || skip "the test has no code for this processor; the rest holds"
	read -r pid begin size <line
	map=/tmp/perf-$pid.map
	echo "$begin $size fooled_by_$1" >text
	"map_$1"
	echo go >&9
	exec 9>&-
	record_it "$jit" "a $1 perf map"
	kill -9 "$jit"
	rm -rf "$map"
}
map_own() { cp text "$map"; }
map_linked() { ln -s "$scratch/text" "$map"; }
map_pipe() { mkfifo "$map"; }
map_folder() { mkdir "$map"; }
map_large() { cp text "$map" && truncate -s 100G "$map"; }
map_theirs() { cp text "$map" && chown 65534:65534 "$map"; }

chmod 755 .
map own
[ "$(frames x.folded fooled_by_own)" -ge 15 ] || fail "its own perf map is not read"
kinds='linked pipe folder large'
if is_root; then
	kinds="$kinds theirs"
else
	skipped="$skipped; only root can give a file to another user"
fi
for kind in $kinds; do
	map "$kind"
	has_no x.folded fooled_by
done

# Of a process of another user: maps of that user and of root are read, that of a third user is not.
if is_root && command -v setpriv >/dev/null; then
	cp "$hostile" ./hostile && chmod 755 hostile
	hostile="setpriv --reuid=65534 --regid=65534 --clear-groups $scratch/hostile"
	cat >as_user <<-END
	#!/bin/sh
	exec $hostile "\$@"
	END
	chmod 755 as_user
	hostile=$scratch/as_user
	if $hostile look / >/dev/null 2>&1; then
		map theirs
		[ "$(frames x.folded fooled_by_theirs)" -ge 15 ] || fail "the map of the target's own user is not read"
		map own
		[ "$(frames x.folded fooled_by_own)" -ge 15 ] || fail "root's map is not read"
		map_third() { cp text "$map" && chown 65533 "$map"; }
		map third
		has_no x.folded fooled_by
	else
		skipped="$skipped; another user cannot run a program in $scratch"
	fi
fi
[ -z "$skipped" ] || skip "${skipped#; }; the rest holds"
exit 0
