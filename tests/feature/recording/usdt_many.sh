#!/bin/sh
# record --usdt with 100 processes, each with a different file: all of them are probed, and nothing is left when the recording has ended.
. "$(dirname "$(realpath "$0")")/../prelude"
is_root || skip "only root can make uprobes"
program=$(dirname "$spoor")/tests/usdt_target
code_of "$program" early
[ "$code" != 77 ] || skip "usdt_target was built without sys/sdt.h (Debian: systemtap-sdt-dev)"
"$spoor" record -q --usdt demo -o first.nettrace -- "$program" early >raised 2>err || {
	grep -q '^cannot record USDT probes' err && skip "$(head -n 1 err)"
	fail "record: $(cat err)"
}
COUNT=100
mkfifo input
exec 9<>input
mkdir many
for i in $(seq $COUNT); do
	cp "$program" "many/usdt_many_$i"
	start ONE sh -c 'exec "$0" 200 <input >/dev/null' "many/usdt_many_$i"
done
# The recorder looks for them once.
all_run() {
	[ "$(for pid in $started; do cat "/proc/$pid/comm" 2>/dev/null; done | grep -c '^usdt_many_')" = $COUNT ]
}
until_true all_run || fail "not all programs run"
begin=$(now_ms)
start RECORDER "$spoor" record -n 'usdt_many_*' --no-dotnet --usdt 'demo:*' -o m.nettrace 2>record.err
# Prints of how many processes an event was recorded.
hit_count() {
	"$spoor" events m.nettrace --json --event step >steps 2>/dev/null
	value steps .pid | sort -u | wc -l
}
all_hit() {
	[ "$(hit_count)" = $COUNT ]
}
until_true all_hit || fail "$(hit_count) processes have hits: $(cat record.err)"
hit=$(now_ms)
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
ended=$(now_ms)
has record.err '[0-9] hits of USDT probes in .*, nothing lost'
has_no record.err 'could not be probed|unreadable'
# The kernel has removed the probes: the semaphores, which it raised in each process, are 0 again, so no process takes a trap.
semaphores_rest() {
	for pid in $started; do
		case $(readlink "/proc/$pid/exe") in
		*/usdt_many_*) semaphore_rests "$pid" || return 1 ;;
		esac
	done
}
offset=$(readelf -SW "$program" | awk '$2 == ".probes" || $3 == ".probes" { for (i = 1; i < NF; i++) if ($i == "PROGBITS") { print $(i + 1); exit } }')
[ -n "$offset" ] || skip "readelf does not show the section of the semaphores"
# The address of the section in the process: that of its first mapping more.
semaphore_rests() {
	base=$(sed -n '1s/-.*//p' "/proc/$1/maps")
	[ "$(dd if="/proc/$1/mem" bs=1 count=2 skip=$((0x$base + 0x$offset)) iflag=skip_bytes 2>/dev/null | od -An -tu2 | tr -d ' ')" = 0 ]
}
until_true semaphores_rest || fail "a semaphore is still raised"
echo "all $COUNT processes hit $((hit - begin)) ms after the recorder's start; it ended within $((ended - hit)) ms, and the probes were gone $(($(now_ms) - ended)) ms later"
for i in $(seq $COUNT); do
	echo >&9
done
exit 0
