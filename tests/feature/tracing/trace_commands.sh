#!/bin/sh
# spoor trace of a command from its first instruction, with its children, and of ports. The command's programs run to their ends whatever happens to spoor.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
export TMPDIR="$scratch" # so that sockets of other traces do not matter

begin one paced 600000

# A command from its first instruction, with its children. Its output is not changed, and spoor returns its exit code.
cat >command.sh <<SH
echo begins
dotnet '$app' burn 300
sh -c "dotnet '$app' burn 300"
exit 7
SH
trace_of -o command.nettrace -- sh command.sh
expect_code 7 "a command: $(cat err)"
has out '^begins$'
[ "$(grep -c rounds out)" = 2 ] || fail "the command's programs did not run to their ends"
traced command.nettrace 2
ls "${TMPDIR:-/tmp}"/spoor-trace-* 2>/dev/null && fail "its socket is still there"

# The first events of a runtime: they have the program's first method.
trace_of --providers Microsoft-Windows-DotNETRuntime:10:5 --rundown false --print -- dotnet "$app" burn 100
has out 'MethodNamespace="System.StartupHookProvider"|MethodName="<Main>\$"|MethodName="Main"'

# The command continues after the trace, and programs that it starts later do not wait for spoor.
cat >late.sh <<SH
dotnet '$app' burn 1500
dotnet '$app' burn 100
exit 5
SH
before=$(date +%s)
trace_of --duration 1s -o late.nettrace -- sh late.sh
expect_code 5 "a command that outlives its trace: $(cat err)"
[ "$(grep -c rounds out)" = 2 ] || fail "the second program did not run"
[ $(($(date +%s) - before)) -lt 150 ] || fail "the second program had to wait"
traced late.nettrace 1

# Killed while the command runs: its program continues, and programs that it starts later do not wait for spoor.
cat >orphan.sh <<SH
dotnet '$app' burn 1200
dotnet '$app' burn 100
SH
start killed "$spoor" trace -q -o orphan.nettrace -- sh orphan.sh >out
until_true grep -q ready out || fail "the command does not start"
kill -9 $killed
wait $killed
two_ran() { [ "$(grep -c rounds out)" = 2 ]; }
until_true two_ran || fail "a command whose trace was killed does not come to its end: $(cat out)"
no_socket() { ! ls "${TMPDIR:-/tmp}"/spoor-trace-*; }
until_true no_socket || fail "its socket is left"

# A listen port that the environment of a program names, and the port of a program.
start porter "$spoor" trace -q --diagnostic-port "$scratch/port.socket" -o ported.nettrace --duration 2s
until_true test -S "$scratch/port.socket" || fail "no port"
[ "$(stat -c %a "$scratch/port.socket")" = 600 ] || fail "the port is open to others"
DOTNET_DiagnosticPorts=$scratch/port.socket dotnet "$app" burn 3000 >out || fail "the program with a listen port"
wait $porter || fail "the trace of a port"
traced ported.nettrace 1
[ ! -e "$scratch/port.socket" ] || fail "the port is still there"
# An earlier process of this id may have left its socket; the newest is the one of this process.
own=$(ls -t "${TMPDIR:-/tmp}"/dotnet-diagnostic-$one-*-socket | head -n 1)
trace_of --dport "$own,connect" --duration 2s -o connected.nettrace
expect_code 0 "connect: $(cat err)"
traced connected.nettrace 1
trace_of --diagnostic-port "$scratch/nobody,connect" -o none.nettrace
expect_code 1 "nobody listens"
has err "cannot connect to '.*/nobody': No such file"
exit 0
