#!/bin/sh
# ctf.sh SPOOR: the events that spoor reads from CTF traces are those that babeltrace2 reads: order, times, threads, names, fields, values.
. "$(dirname "$(realpath "$0")")/../prelude"
command -v babeltrace2 >/dev/null || skip "babeltrace2 is not in PATH (Debian: babeltrace2)"
command -v python3 >/dev/null || skip "python3 is not in PATH"
babeltrace2 --clock-gmt --clock-date "$here/../data/ctf/lttng" >peer 2>err || fail "babeltrace2 cannot read the trace"
"$spoor" events --json "$here/../data/ctf/lttng" >own 2>err || fail "spoor cannot read the trace"
count=$(LC_ALL=C.UTF-8 python3 "$here/ctf_compare.py" peer own 2>&1) || fail "$count"
[ "$count" = 28 ] || fail "$count events were compared, not 28"
# The comparison can fail.
sed '3s/amount\|vpid = 2/&9/' peer >other
! LC_ALL=C.UTF-8 python3 "$here/ctf_compare.py" other own >/dev/null 2>&1 || fail "the comparison finds no difference"
sed '$d' own >short
! LC_ALL=C.UTF-8 python3 "$here/ctf_compare.py" peer short >/dev/null 2>&1 || fail "the comparison misses no event"
echo "$count events are the same"
