#!/bin/sh
# spoor record -- COMMAND of .NET programs: the listen port holds a program until its session is open, so that a short program has names. A program is not held when the recorder is
# stopped or dead.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
export TMPDIR="$scratch" # so that sockets of other recordings do not matter
port=$scratch/spoor-record

# few_stubs FILE: at most 3 samples, or 1 of 20, are in code without an event. Stubs have none.
few_stubs() {
	stubs=$(frames "$1" '\(JIT code\)')
	[ "$stubs" -le 3 ] || [ $((stubs * 20)) -le "$(frames "$1" ';Hot\.')" ]
}

# A program that computes for 200 ms: its managed frames have names, except for stubs without an event.
code_of timeout 250 "$spoor" record -F 999 -o short.nettrace -- dotnet "$app" burn 200
expect_code 0 "a short program: $(cat err)"
has out '^[0-9.]+ rounds'
has_no err 'processes that could not be asked'
folded short.nettrace short.folded
at_least short.folded 10 ';Hot\.Burn'
few_stubs short.folded || fail "frames without a name: $(grep -oE -m 3 '[^;]*;[^;]*;[(]JIT code[)].*' short.folded)"
"$spoor" report -v short.nettrace >report || fail "no report"
has report '^opened in Managed \([0-9]+\): live .*, from the start, rundown 0x18 at its end'
"$spoor" events short.nettrace >lines || fail "no events"
has lines 'Microsoft-Windows-DotNETRuntime/Runtime/Start '

# A shell that executes the program, and a shell that starts it: each process has its name and its own methods.
for script in "exec dotnet '$app' burn 200" "dotnet '$app' burn 200; dotnet '$app' burn 200 & dotnet '$app' burn 200; wait"; do
	code_of timeout 250 "$spoor" record -F 999 -o shell.nettrace -- sh -c "i=0; while [ \$i -lt 20000 ]; do i=\$((i + 1)); done; $script"
	expect_code 0 "$script: $(cat err)"
	has_no err 'processes that could not be asked'
	folded shell.nettrace shell.folded
	at_least shell.folded 10 '^Managed;.*;Hot\.Burn'
	at_least shell.folded 2 '^sh;'
	few_stubs shell.folded || fail "frames without a name: $(grep -oE -m 3 '[^;]*;[^;]*;[(]JIT code[)].*' shell.folded)"
	has_no shell.folded '^sh;.*;Hot\.Burn'
done
"$spoor" report --json shell.nettrace >report
json report '[.processes[] | select(.name == "Managed")] | length >= 3'

# The end of the recording removes the port's socket.
for file in "$port"-*.socket; do
	[ ! -e "$file" ] || fail "a socket is left: $file"
done

# There is no port when runtimes are not asked. A program that cannot be asked is counted in a message.
# shellcheck disable=SC2016 # $DOTNET_DiagnosticPorts is of the inner shell
for option in --no-dotnet --no-symbols '-D 1'; do
	# shellcheck disable=SC2086 # an option and its value
	code_of "$spoor" record -q $option -o none.nettrace -- sh -c 'sleep 0.1; echo "ports:$DOTNET_DiagnosticPorts"'
	expect_code 0 "$option"
	has out '^ports:$'
done
code_of env DOTNET_EnableDiagnostics=0 timeout 250 "$spoor" record -F 999 -o mute.nettrace -- dotnet "$app" burn 200
expect_code 0 "a program that cannot be asked: $(cat err)"
has out '^[0-9.]+ rounds'
# The names may all be found in its memory.
has err '([0-9] % of processes that could not be asked|^memory +methods of 1 \.NET process were named from its memory)'
"$spoor" report -v mute.nettrace >report
has report '^(Managed|dotnet) \([0-9]+\): no names from its runtime: '

# A port that the user has set stays first in the list.
# shellcheck disable=SC2016 # as above
code_of env DOTNET_DiagnosticPorts="$scratch/other.socket,nosuspend" "$spoor" record -q -o none.nettrace -- sh -c 'echo "ports:$DOTNET_DiagnosticPorts"'
has out "^ports:$scratch/other\.socket,nosuspend;$port-[0-9]+-[0-9a-f]+\.socket$"

# A program that the command starts after the end of the recording is not held.
code_of timeout 250 "$spoor" record --duration 300ms -q -o over.nettrace -- sh -c "sleep 1; dotnet '$app' burn 20"
expect_code 0 "a program after the end: $(cat err)"
has out '^[0-9.]+ rounds'

# Killed while a program runs, and while a program is held: both continue, and programs that are started later run.
: >ready.killed
start killed "$spoor" record -q -o killed.nettrace -- sh -c "dotnet '$app' burn 1500; dotnet '$app' burn 20; echo through" >ready.killed 2>killed.err
until_true grep -q ready ready.killed || fail "the program does not start: $(cat killed.err)"
kill -9 $killed
wait $killed 2>/dev/null
until_true grep -q '^through' ready.killed || fail "the command of a recorder that was killed does not go on"
[ "$(grep -c rounds ready.killed)" = 2 ] || fail "a program did not run: $(cat ready.killed)"

: >ready.held
start held "$spoor" record -q -o held.nettrace -- sh -c "echo begun; until [ -e go.held ]; do sleep 0.1; done; dotnet '$app' burn 20; echo through" >ready.held 2>held.err
until_true grep -q begun ready.held || fail "the command does not start: $(cat held.err)"
# The recorder's helpers are stopped first, because they resume programs when the recorder is silent.
helpers=''
for each in $(cat /proc/$held/task/*/children); do
	case $(cat "/proc/$each/comm") in
	spoor*) helpers="$helpers $each" ;;
	esac
done
[ -n "$helpers" ] || fail "the recorder has no helper"
started="$started$helpers"
# shellcheck disable=SC2086 # a list
kill -STOP $helpers
kill -STOP $held
touch go.held
sleep 3 # on a machine that is not busy, the program has come to the port
[ "$(grep -c rounds ready.held)" = 0 ] || fail "the program was not held"
kill -9 $held
wait $held 2>/dev/null
# shellcheck disable=SC2086 # a list
kill -CONT $helpers
until_true grep -q '^through' ready.held || fail "a program that was held does not continue"

# Stopped: the helper resumes programs that start then. Continued: a program is held for its session again, and a message has the number of those that were not. (The
# intervals of the counters are long: .NET 10 may hang when a program ends during the first collection of its Meters.)
for verb in 'record -F 999' 'trace --providers Microsoft-Windows-DotNETRuntime:10:5' 'counters --refresh-interval 60'; do
	: >ready.stopped
	: >go.stopped
	: >end.stopped
	output='-o stopped.nettrace'
	[ "${verb%% *}" != counters ] || output=
	# shellcheck disable=SC2086 # options and their values
	start stopped "$spoor" $verb $output -- sh -c "echo begun; until [ -s go.stopped ]; do sleep 0.1; done; dotnet '$app' burn 20; dotnet '$app' burn 20; echo through; until [ -s end.stopped ]; do sleep 0.1; done; dotnet '$app' burn 500" >ready.stopped 2>stopped.err
	until_true grep -q begun ready.stopped || fail "$verb: the command does not start: $(cat stopped.err)"
	kill -STOP $stopped
	echo go >go.stopped
	until_true grep -q '^through' ready.stopped || fail "$verb: a program waits for a stopped recorder"
	kill -CONT $stopped
	echo end >end.stopped
	wait $stopped || fail "$verb: stopped and continued: $(cat stopped.err)"
	[ "$(grep -c rounds ready.stopped)" = 3 ] || fail "$verb: a program did not run: $(cat ready.stopped)"
	has stopped.err '[23] runtimes were resumed while spoor was stopped or hung, and not observed from the start'
done

# A daemon that lives on after command and recorder: programs that it starts are not held, and its end removes the socket.
rm -f "$port"-*.socket
code_of "$spoor" record -q -o daemon.nettrace -- sh -c "(sleep 1; dotnet '$app' burn 20; echo through) >daemon.out 2>&1 &"
expect_code 0 "a daemon: $(cat err)"
until_true grep -q '^through' daemon.out || fail "a program of a daemon is held: $(cat daemon.out)"
# shellcheck disable=SC2016 # $1 is of the inner shell
until_true sh -c 'for file in "$1"-*.socket; do [ ! -e "$file" ] || exit 1; done' sh "$port"
for file in "$port"-*.socket; do
	[ ! -e "$file" ] || fail "a daemon leaves a socket: $file"
done
exit 0
