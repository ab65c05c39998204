#!/bin/sh
# tracing_hangs.sh: exits with 0 when whatever reads a file of tracefs hangs on this kernel, which is so after an oops of the kernel that left its lock of
# events held. The tests that use tracepoints or uprobes could not end on it (they have the label "tracing"). Exits with 1 otherwise, also without tracefs.
set -u
[ "$(id -u)" = 0 ] || exit 1
folder=$(mktemp -d) || exit 1
# The reader may be impossible to kill: it is left behind, and writes nowhere.
setsid unshare -m sh -c '
	mount -t tracefs tracefs /sys/kernel/tracing && cat /sys/kernel/tracing/events/sched/sched_switch/format
	: >"$0/ended"' "$folder" >/dev/null 2>&1 </dev/null &
waited=0
while [ ! -e "$folder/ended" ] && [ $waited -lt 300 ]; do
	sleep 0.1
	waited=$((waited + 1))
done
ended=no
[ ! -e "$folder/ended" ] || ended=yes
rm -rf "$folder"
[ $ended = no ]
