#!/bin/sh
# spoor record -- COMMAND of .NET programs: held at a listen port until their session is open, so that even the shortest has its names; never held for longer, whatever becomes of
# the recorder.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"
export TMPDIR="$scratch" # sockets of other recordings are none of ours
port=$scratch/spoor-record

# A program that computes for a moment only: its managed frames have names, but for stubs that nobody knows.
code_of timeout 60 "$spoor" record -F 999 -o short.nettrace -- dotnet "$app" burn 200
expect_code 0 "a short program: $(cat err)"
has out '^[0-9.]+ rounds'
has_no err 'processes that could not be asked'
folded short.nettrace short.folded
at_least short.folded 10 ';Hot\.Burn'
[ "$(frames short.folded '\(JIT code\)')" -le 3 ] || fail "frames without a name: $(grep -oE -m 3 '[^;]*;[^;]*;[(]JIT code[)].*' short.folded)"
"$spoor" report -v short.nettrace >report || fail "no report"
has report '^opened in Managed \([0-9]+\): live .*, from the start, rundown 0x18 at its end'
"$spoor" events short.nettrace >lines || fail "no events"
has lines 'Microsoft-Windows-DotNETRuntime/Runtime/Start '

# What a shell has become, and what it has started: each under its name, with its own methods.
for script in "exec dotnet '$app' burn 200" "dotnet '$app' burn 200; dotnet '$app' burn 200 & dotnet '$app' burn 200; wait"; do
	code_of timeout 60 "$spoor" record -F 999 -o shell.nettrace -- sh -c "i=0; while [ \$i -lt 20000 ]; do i=\$((i + 1)); done; $script"
	expect_code 0 "$script: $(cat err)"
	has_no err 'processes that could not be asked'
	folded shell.nettrace shell.folded
	at_least shell.folded 10 '^Managed;.*;Hot\.Burn'
	at_least shell.folded 2 '^sh;'
	[ "$(frames shell.folded '\(JIT code\)')" -le 3 ] || fail "frames without a name: $(grep -oE -m 3 '[^;]*;[^;]*;[(]JIT code[)].*' shell.folded)"
	has_no shell.folded '^sh;.*;Hot\.Burn'
done
"$spoor" report --json shell.nettrace >report
[ "$(grep -oE '"name":"Managed"' report | wc -l)" -ge 3 ] || fail "not three processes of the program"

# The port is gone with the recording, and no process of ours stays.
for file in "$port"-*.socket; do
	[ ! -e "$file" ] || fail "a socket stays: $file"
done

# No port for who is not to be asked. A program that ends before it can be asked is counted and told.
# shellcheck disable=SC2016 # $DOTNET_DiagnosticPorts is of the inner shell
for option in --no-dotnet --no-symbols '-D 1'; do
	# shellcheck disable=SC2086 # an option and its value
	code_of "$spoor" record -q $option -o none.nettrace -- sh -c 'sleep 0.1; echo "ports:$DOTNET_DiagnosticPorts"'
	expect_code 0 "$option"
	has out '^ports:$'
done
code_of env DOTNET_EnableDiagnostics=0 timeout 60 "$spoor" record -F 999 -o mute.nettrace -- dotnet "$app" burn 200
expect_code 0 "a program that cannot be asked: $(cat err)"
has out '^[0-9.]+ rounds'
has err '[0-9] % of processes that could not be asked'
"$spoor" report -v mute.nettrace >report
has report '^(Managed|dotnet) \([0-9]+\): no names from its runtime: '

# The user's own port stays in front of ours; whatever is no .NET program does not notice.
# shellcheck disable=SC2016 # as above
code_of env DOTNET_DiagnosticPorts="$scratch/other.socket,nosuspend" "$spoor" record -q -o none.nettrace -- sh -c 'echo "ports:$DOTNET_DiagnosticPorts"'
has out "^ports:$scratch/other\.socket,nosuspend;$port-[0-9]+-[0-9a-f]+\.socket$"

# The recording is over, the command is not: what it starts then is not held.
code_of timeout 60 "$spoor" record --duration 300ms -q -o over.nettrace -- sh -c "sleep 1; dotnet '$app' burn 20"
expect_code 0 "a program behind the end: $(cat err)"
has out '^[0-9.]+ rounds'

# Killed while a program runs, and while one is being held: both go on, and so does what is started afterwards.
: >ready.killed
start killed "$spoor" record -q -o killed.nettrace -- sh -c "dotnet '$app' burn 1500; dotnet '$app' burn 20; echo through" >ready.killed 2>killed.err
until_true grep -q ready ready.killed || fail "the program does not start: $(cat killed.err)"
kill -9 $killed
wait $killed 2>/dev/null
until_true grep -q '^through' ready.killed || until_true grep -q '^through' ready.killed || fail "the command of a recorder that was killed does not go on"
[ "$(grep -c rounds ready.killed)" = 2 ] || fail "a program did not run: $(cat ready.killed)"

: >ready.held
start held "$spoor" record -q -o held.nettrace -- sh -c "echo begun; sleep 0.5; dotnet '$app' burn 20; echo through" >ready.held 2>held.err
until_true grep -q begun ready.held || fail "the command does not start: $(cat held.err)"
kill -STOP $held
sleep 1.5 # the program has come to the port, and nobody answers
[ "$(grep -c rounds ready.held)" = 0 ] || fail "the program was not held"
kill -9 $held
wait $held 2>/dev/null
until_true grep -q '^through' ready.held || until_true grep -q '^through' ready.held || fail "a program that was held is held for ever"

# Stopped: the helper resumes programs that start meanwhile. Continued: a program is held for its session again, and the end says how many were not.
for verb in 'record -F 999' 'trace --providers Microsoft-Windows-DotNETRuntime:10:5' counters; do
	: >ready.stopped
	: >go.stopped
	: >end.stopped
	output='-o stopped.nettrace'
	[ "$verb" != counters ] || output=
	# shellcheck disable=SC2086 # options and their values
	start stopped "$spoor" $verb $output -- sh -c "echo begun; until [ -s go.stopped ]; do sleep 0.1; done; dotnet '$app' burn 20; dotnet '$app' burn 20; echo through; until [ -s end.stopped ]; do sleep 0.1; done; dotnet '$app' burn 500" >ready.stopped 2>stopped.err
	until_true grep -q begun ready.stopped || fail "$verb: the command does not start: $(cat stopped.err)"
	kill -STOP $stopped
	echo go >go.stopped
	until_true grep -q '^through' ready.stopped || until_true grep -q '^through' ready.stopped || until_true grep -q '^through' ready.stopped || fail "$verb: a program waits for a recorder that is stopped"
	kill -CONT $stopped
	echo end >end.stopped
	wait $stopped || fail "$verb: stopped and continued: $(cat stopped.err)"
	[ "$(grep -c rounds ready.stopped)" = 3 ] || fail "$verb: a program did not run: $(cat ready.stopped)"
	has stopped.err '[23] runtimes were resumed while spoor was stopped or hung, and not observed from the start'
done

# A daemon that outlives command and recorder: what it starts then is not held, and the socket goes with the last of them.
rm -f "$port"-*.socket
code_of "$spoor" record -q -o daemon.nettrace -- sh -c "(sleep 1; dotnet '$app' burn 20; echo through) >daemon.out 2>&1 &"
expect_code 0 "a daemon: $(cat err)"
until_true grep -q '^through' daemon.out || until_true grep -q '^through' daemon.out || fail "what a daemon starts is held for ever: $(cat daemon.out)"
for _ in 1 2 3; do
	# shellcheck disable=SC2016 # $1 is of the inner shell
	until_true sh -c 'for file in "$1"-*.socket; do [ ! -e "$file" ] || exit 1; done' sh "$port" && break
done
for file in "$port"-*.socket; do
	[ ! -e "$file" ] || fail "a socket stays behind a daemon: $file"
done
exit 0
