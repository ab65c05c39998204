#!/bin/sh
# spoor counters of a command from its first instruction, with its children, and of ports. The command runs to its end whatever happens to spoor.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
export TMPDIR="$scratch" # so that sockets of other tools do not matter

begin shop meters 600000

# A command from its first instruction, with its children. Its output is not changed, and spoor returns its exit code.
cat >command.sh <<SH
echo begins
dotnet '$app' meters 2500
sh -c "dotnet '$app' meters 2500"
exit 7
SH
code_of timeout 250 "$spoor" counters --counters Shop.Orders,System.Runtime --refresh-interval 0.5 --json -o command.json -- sh command.sh
expect_code 7 "a command"
has out '^begins$'
[ "$(grep -c '^ready$' out)" = 2 ] || fail "the command's programs did not run to their ends"
! ls "${TMPDIR:-/tmp}"/spoor-counters-* 2>/dev/null || fail "its socket is left"
json command.json '[.Events[].pid] | unique | length == 2'
# Nothing of the start is missing: the sum of the intervals is the value, of an observable counter of the runtime and of the program's own.
for name in dotnet.jit.compiled_methods dotnet.gc.heap.total_allocated shop.orders; do
	value command.json '.Events[] | select(.counter == $a) | "\(.added) \(.since_start) \(.pid):\(.tags)"' $name |
		awk '{ each = $0; sub(/^[^ ]* [^ ]* /, "", each); sum[each] += $1; last[each] = $2; n++ }
			END { for (each in sum) { series++; if (sum[each] < last[each] * 0.999999 || sum[each] > last[each] * 1.000001) { print each, sum[each], last[each]; bad = 1 } }
			exit bad || series < 2 || n < 6 }' || fail "the sum of the intervals of $name is not its value since the start"
done

# spoor enables the runtime's EventCounters after its start.
code_of timeout 250 "$spoor" counters --counters 'EventCounters\System.Runtime[alloc-rate]' --refresh-interval 0.5 -- dotnet "$app" meters 4000
expect_code 0 "EventCounters of a command"
has out 'System\.Runtime +Allocation Rate +'
# Many starts: EventCounters that are enabled during the start would lock up some of them. (The interval is long: .NET 10 may hang when a program ends during the first
# collection of its Meters.)
for i in $(seq 12); do
	code_of timeout 250 "$spoor" counters -q --counters System.Runtime,Shop.Orders --refresh-interval 60 -- dotnet "$app" meters 10
	expect_code 0 "start $i"
done

# The count ends the counting; the command continues, and programs that it starts later do not wait for spoor.
before=$(date +%s)
cat >late.sh <<SH
dotnet '$app' meters 2500
dotnet '$app' meters 100
exit 5
SH
code_of timeout 250 "$spoor" counters -q --counters Shop.Orders --refresh-interval 0.5 --count 1 -- sh late.sh
expect_code 5 "a command that outlives its counting"
[ "$(grep -c '^ready$' out)" = 2 ] || fail "the second program did not run"
[ $(($(date +%s) - before)) -lt 150 ] || fail "the second program had to wait"

# Killed: programs of the command do not wait for spoor.
start killed "$spoor" counters -q -- sh late.sh >out
until_true grep -q ready out || fail "the command does not start"
kill -9 $killed
wait $killed
both_ran() {
	[ "$(grep -c '^ready$' out)" = 2 ]
}
until_true both_ran || fail "a command whose counting was killed does not come to its end: $(cat out)"

# A signal is passed to the command.
start counted "$spoor" counters -q -- sh -c "dotnet '$app' meters 600000; exit 9" >out
until_true grep -q ready out || fail "the command does not start"
shell=$(pgrep -P "$counted" -x sh)
program=$(pgrep -P "$shell")
kill -TERM $counted
wait $counted
[ $? = 143 ] || fail "a command that was ended by the signal it was passed"
[ ! -e "/proc/$shell" ] || fail "the command did not get the signal"
kill "$program" # the shell's child does not get the signal

# Ctrl-Z, which stops the command too, ends the counting. Both stop, both continue, and spoor returns the command's exit code. (timeout(1) makes a process group that can be stopped.)
# Not the runtime's own meter: the first collection of its values can deadlock a runtime that is still starting.
start limiter timeout 250 "$spoor" counters -q --counters Shop.Orders -- sh -c "dotnet '$app' meters 5000; exit 6" >out
until_true grep -q ready out || fail "the command does not start"
counted=$(cut -d ' ' -f 1 /proc/$limiter/task/$limiter/children)
shell=$(pgrep -P "$counted" -x sh)
program=$(pgrep -P "$shell")
started="$started $counted $program"
kill -TSTP "$shell" "$program" "$counted"
for each in $counted $shell $program; do
	until_true grep -q '^State:.T' "/proc/$each/status" ||
		fail "Ctrl-Z does not stop $each: $(cat "/proc/$each/comm")"
done
kill -CONT "$counted" "$shell" "$program"
wait $limiter
[ $? = 6 ] || fail "a command after Ctrl-Z"

# A command without .NET, one that cannot be run, ports.
code_of "$spoor" counters -- sh -c 'exit 3'
expect_code 1 "no .NET"
has err '^nothing was counted: no \.NET runtime came to the port\.$'
code_of "$spoor" counters -- "$scratch/nowhere"
expect_code 127 "a command that is none"
has err "^cannot run '.*/nowhere': No such file"
start porter "$spoor" counters -q --counters Shop.Orders --dport "$scratch/port.socket" --count 1 --csv >ported
until_true test -S "$scratch/port.socket" || fail "no port"
[ "$(stat -c %a "$scratch/port.socket")" = 600 ] || fail "the port is open to others"
DOTNET_DiagnosticPorts=$scratch/port.socket dotnet "$app" meters 8000 >out || fail "the program with a listen port"
wait $porter || fail "the counters of a port"
has ported '^Timestamp,.*,Process$'
has ported 'shop\.temperature'
[ ! -e "$scratch/port.socket" ] || fail "the port is left"
own=$(ls -t "${TMPDIR:-/tmp}"/dotnet-diagnostic-$shop-*-socket | head -n 1)
code_of timeout 250 "$spoor" counters --diagnostic-port "$own,connect" --counters Shop.Orders --count 1
expect_code 0 "connect"
has out "^[0-9:.]+ Managed \($shop\)  Shop\.Orders  shop\.temperature"
code_of "$spoor" counters --diagnostic-port "$scratch/nobody,connect"
expect_code 1 "no server at the port"
has err "cannot connect to '.*/nobody': No such file"
exit 0
