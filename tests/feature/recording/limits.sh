#!/bin/sh
# spoor record keeps to --max-size, and refuses to start in a control group with too little memory that its target shares.
. "$(dirname "$(realpath "$0")")/../prelude"

group=
clean_up_more() {
	[ -n "$group" ] || return
	for pid in $(cat "$group/cgroup.procs"); do
		kill -9 "$pid" 2>/dev/null
	done
	until_true rmdir "$group"
}

mkdir fill
for i in $(seq 40); do # distinct names, so that the recording grows
	cp "$target" "fill/p$i"
done
start load "$target" churn 100000000 2 fill/p*
for name in x.nettrace x.nettrace.zst; do
	code_of timeout 250 "$spoor" record -F 999 -p "$load" --max-size 300k -o $name
	expect_code 0 "--max-size"
	has err '^the recording has reached its greatest size, 300 kB\.$'
	size=$(stat -c %s $name)
	[ "$size" -ge 150000 ] && [ "$size" -le 312000 ] || fail "$name has $size bytes"
	code_of "$spoor" report --json $name
	json out '.recording.complete'
done
kill -9 "$load"

is_root || skip "a control group is made by root only; the rest holds"
if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
	group=/sys/fs/cgroup/memory/spoor-test-$$
	limit=memory.limit_in_bytes
elif grep -qw memory /sys/fs/cgroup/cgroup.controllers 2>/dev/null; then
	group=/sys/fs/cgroup/spoor-test-$$
	limit=memory.max
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
else
	skip "no memory controller here; the rest holds"
fi
mkdir "$group" 2>/dev/null || { group= && skip "no control group can be made here; the rest holds"; }
[ -e "$group/$limit" ] || skip "no memory controller for groups here; the rest holds"

# inside LIMIT COMMAND...: runs the command in the control group with this limit of memory.
inside() {
	echo "$1" >"$group/$limit" || fail "no limit of $1"
	shift
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}

code_of inside 50000000 "$spoor" record -o y.nettrace -- "$target" spin 300
expect_code 1 "50 MB"
has err '^only [0-9.]+ [kM]B of 50\.0 MB of memory are left to the control group'
has err '^record from outside of that container, or use --yes\.$'
[ ! -e y.nettrace ] || fail "a file is left behind"
code_of inside 400000000 "$spoor" record -o y.nettrace -- "$target" spin 300
expect_code 0 "400 MB"
has err '^memory     [0-9.]+ MB of 400 MB left to the control group shared with the target$'
if is_sanitized; then
	echo "a sanitizer's build needs more than 50 MB"
else
	code_of inside 50000000 "$spoor" record --yes -o y.nettrace -- "$target" spin 300
	expect_code 0 "50 MB and --yes"
fi

# The limit does not matter for a target outside of the group.
start other "$target" spin 600000
code_of inside 50000000 "$spoor" record --duration 300ms -p "$other" -o y.nettrace
is_sanitized || expect_code 0 "a target outside of the group"
has_no err 'control group'
exit 0
