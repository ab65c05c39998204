#!/bin/sh
# spoor trace of a start with EventCounters, which a runtime may lock up over when it is asked for them too early: they come later, in the same file, and the start itself is observed
# from its first instruction on.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

counters=System.Runtime:0:4:EventCounterIntervalSec=1
start_events=Microsoft-Windows-DotNETRuntime:10:5

# seconds FILE PATTERN: the time of day of the first line that matches.
seconds() {
	grep -m 1 -E -e "$2" "$1" | cut -d' ' -f1 | awk -F: '{ printf "%.6f\n", $1 * 3600 + $2 * 60 + $3 }'
}

# Both in one file: the first method that is compiled, and counters a second later; it is said, here and in the file.
code_of timeout 60 "$spoor" trace --providers $counters,$start_events --rundown false -o both.nettrace -- dotnet "$app" burn 6000
expect_code 0 "both: $(cat err)"
has err '^EventCounters are asked for 1 s after a runtime.s start: '
has err 'both\.nettrace .* events of 1 process in [0-9.]+ s, nothing lost'
"$spoor" events both.nettrace >lines 2>err || fail "events: $(cat err)"
has lines 'MethodNamespace="System.StartupHookProvider"|MethodName="<Main>\$"|MethodName="Main"'
has lines '  System\.Runtime/EventCounters  .*Name="working-set" .* Mean=[1-9]'
has lines 'Code="late-counters" .*was asked for its EventCounters 1\.00 s after its start'
begun=$(seconds lines 'Runtime/Start|JittingStarted')
asked=$(seconds lines 'Code="late-counters"')
came=$(seconds lines 'System\.Runtime/EventCounters')
awk -v begun="$begun" -v asked="$asked" -v came="$came" 'BEGIN { exit !(asked > begun + 0.1 && came > asked) }' ||
	fail "the start at $begun s, asked at $asked s, the first counter at $came s"
"$spoor" report -v both.nettrace >report
has report '^opened in Managed \([0-9]+\): '
has report '^Managed \([0-9]+\): .*was asked for its EventCounters 1\.00 s after its start'

# However often it is started: short ones that end before that, too. Without a session of its own for the start there is nothing to open in these.
for i in $(seq 24); do
	code_of timeout 30 "$spoor" trace --providers $counters,$start_events --rundown false -o start.nettrace -- dotnet "$app" burn 10
	expect_code 0 "start $i: $(cat err)"
	has out 'rounds'
	has err ' events of 1 process in .*nothing lost'
done
"$spoor" events start.nettrace >lines 2>err || fail "events: $(cat err)"
has lines 'JittingStarted'
has_no lines 'System\.Runtime/EventCounters|late-counters'

# Nothing but counters: they come, with the runtime's names at the end.
code_of timeout 60 "$spoor" trace --providers $counters -o only.nettrace -- dotnet "$app" burn 5000
expect_code 0 "only counters: $(cat err)"
"$spoor" events only.nettrace >lines 2>err || fail "events: $(cat err)"
has lines '  System\.Runtime/EventCounters  .*Name="cpu-usage" '
has lines 'Microsoft-Windows-DotNETRuntimeRundown/'
code_of timeout 60 "$spoor" trace --providers $counters -o none.nettrace -- dotnet "$app" burn 10
expect_code 1 "one that ends before it is asked"
has out 'rounds'
has err 'was not traced: it ended before it could be asked for EventCounters, which is not done during its start'
[ ! -e none.nettrace ] || fail "a file of nothing"

# The runtime's own bytes are a file a session.
code_of timeout 60 "$spoor" trace --raw --providers $counters,$start_events --rundown false -o raw.nettrace -- dotnet "$app" burn 4000
expect_code 0 "raw: $(cat err)"
has err '^2 files '
for file in raw_[0-9]*.nettrace; do
	[ "$(head -c 8 "$file")" = Nettrace ] && [ "$(tail -c 1 "$file" | od -An -tu1 | tr -d ' ')" = 1 ] || fail "$file is no whole trace"
	"$spoor" events "$file" >"$file.lines" 2>err || fail "events of $file: $(cat err)"
done
has raw_*_counters.nettrace.lines 'System\.Runtime/EventCounters'
rm raw_*_counters.nettrace.lines
has raw_*.nettrace.lines 'JittingStarted'

# Of one that another lets go on, it is seen when it does: after that they are asked for.
start porter timeout 60 "$spoor" trace --diagnostic-port "$scratch/port.socket" --resume-runtime false --providers $counters,$start_events --rundown false --duration 5s -o held.nettrace 2>porter.err
until_true test -S "$scratch/port.socket" || fail "no port"
: >ready.held
DOTNET_DiagnosticPorts="$scratch/port.socket,nosuspend" start held dotnet "$app" burn 600000 >ready.held
wait $porter || fail "a port that lets nobody go on: $(cat porter.err)"
"$spoor" events held.nettrace >lines 2>err || fail "events: $(cat err)"
has lines '  System\.Runtime/EventCounters  '
has lines 'Code="late-counters"'

# One that runs is asked at once, in one session.
code_of timeout 60 "$spoor" trace -p $held --providers $counters,$start_events --rundown false --duration 3s -o running.nettrace
expect_code 0 "one that runs: $(cat err)"
has_no err 'EventCounters are asked for'
"$spoor" events running.nettrace >lines 2>err || fail "events: $(cat err)"
has lines '  System\.Runtime/EventCounters  '
has_no lines 'late-counters'

# One that waits for somebody else to let it go on is not asked, and Ctrl-C is enough.
DOTNET_DefaultDiagnosticPortSuspend=1 start waiting dotnet "$app" burn 600000 >waiting.out
until_true sh -c "ls ${TMPDIR:-/tmp}/dotnet-diagnostic-$waiting-*" || fail "the program that waits has no socket"
start tracer "$spoor" trace -p "$waiting,$held" --providers $counters --rundown false -o waits.nettrace 2>err
sleep 2.5
kill -INT $tracer
wait $tracer || fail "one that waits: $(cat err)"
has err "Managed \($waiting\) was not traced: |dotnet \($waiting\) was not traced: "
"$spoor" events waits.nettrace >lines 2>err
has lines " $held/[0-9]+  System\.Runtime/EventCounters  "
has_no lines " $waiting/[0-9]+  System\.Runtime/EventCounters  "
[ "$("$(dirname "$spoor")/tests/probe" slots $held 2>err)" = 64 ] || fail "a session stays: $(cat err)"
exit 0
