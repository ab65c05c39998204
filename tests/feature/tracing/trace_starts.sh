#!/bin/sh
# spoor trace of a start with EventCounters: a runtime may lock up when EventCounters are enabled during its start, so spoor enables them 1 s later, in the same file. The start itself is
# traced from its first instruction.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

counters=System.Runtime:0:4:EventCounterIntervalSec=1
start_events=Microsoft-Windows-DotNETRuntime:10:5

# seconds FILE PATTERN: prints the time of day of the first line that matches.
seconds() {
	grep -m 1 -E -e "$2" "$1" | cut -d' ' -f1 | awk -F: '{ printf "%.6f\n", $1 * 3600 + $2 * 60 + $3 }'
}

# has_counters FILE: it has an event of EventCounters; it may still be written.
has_counters() {
	"$spoor" events "$1" | grep -q '  System\.Runtime/EventCounters  '
}

# Both in one file: the first method, and counters a second later. A message says so, here and in the file.
code_of timeout 250 "$spoor" trace --providers $counters,$start_events --rundown false -o both.nettrace -- dotnet "$app" burn 6000
expect_code 0 "both: $(cat err)"
has err '^EventCounters are enabled 1 s after a runtime.s start: '
has err 'both\.nettrace .* events of 1 process in [0-9.]+ m?s, nothing lost'
"$spoor" events both.nettrace >lines 2>err || fail "events: $(cat err)"
has lines 'MethodNamespace="System.StartupHookProvider"|MethodName="<Main>\$"|MethodName="Main"'
has lines '  System\.Runtime/EventCounters  .*Name="working-set" .* Mean=[1-9]'
has lines 'Code="late-counters" .*EventCounters of .* were enabled [1-9][0-9]*\.[0-9]+ s after its start'
begun=$(seconds lines 'Runtime/Start|JittingStarted')
asked=$(seconds lines 'Code="late-counters"')
came=$(seconds lines 'System\.Runtime/EventCounters')
# Events that arrive after the notice was written have its time.
awk -v begun="$begun" -v asked="$asked" -v came="$came" 'BEGIN { exit !(asked >= begun && came > asked) }' ||
	fail "the start at $begun s, asked at $asked s, the first counter at $came s"
"$spoor" report -v both.nettrace >report
has report '^opened in Managed \([0-9]+\): '
has report '^Managed \([0-9]+\): .*EventCounters of .* were enabled [1-9][0-9]*\.[0-9]+ s after its start'

# Many starts of a program that ends before that. On a busy machine some of them live until spoor requests EventCounters.
without=''
for i in $(seq 24); do
	code_of timeout 250 "$spoor" trace --providers $counters,$start_events --rundown false -o start.nettrace -- dotnet "$app" burn 10
	expect_code 0 "start $i: $(cat err)"
	has out 'rounds'
	has err ' events of 1 process in .*nothing lost'
	"$spoor" events start.nettrace >lines 2>events.err || fail "events: $(cat events.err)"
	has lines 'JittingStarted'
	grep -qE 'System\.Runtime/EventCounters|late-counters' lines || without=yes
done
[ -n "$without" ] || fail "EventCounters in each of 24 programs that end after 10 ms"

# Only counters: they are in the file, with the runtime's rundown at the end.
code_of timeout 250 "$spoor" trace --providers $counters -o only.nettrace -- dotnet "$app" burn 5000
expect_code 0 "only counters: $(cat err)"
"$spoor" events only.nettrace >lines 2>err || fail "events: $(cat err)"
has lines '  System\.Runtime/EventCounters  .*Name="cpu-usage" '
has lines 'Microsoft-Windows-DotNETRuntimeRundown/'
for _ in $(seq 20); do # a busy machine may take more than the second to the program's end
	rm -f none.nettrace
	code_of timeout 250 "$spoor" trace --providers $counters -o none.nettrace -- dotnet "$app" burn 10
	[ $code = 0 ] || break
done
expect_code 1 "a program that ends before it is asked"
has out 'rounds'
has err 'was not traced: it ended before it could be asked for EventCounters, which is not done during its start'
[ ! -e none.nettrace ] || fail "there is an empty file"

# --raw writes a file for each session.
code_of timeout 250 "$spoor" trace --raw --providers $counters,$start_events --rundown false -o raw.nettrace -- dotnet "$app" burn 4000
expect_code 0 "raw: $(cat err)"
has err '^2 files '
for file in raw_[0-9]*.nettrace; do
	[ "$(head -c 8 "$file")" = Nettrace ] && [ "$(tail -c 1 "$file" | od -An -tu1 | tr -d ' ')" = 1 ] || fail "$file is no whole trace"
	"$spoor" events "$file" >"$file.lines" 2>err || fail "events of $file: $(cat err)"
done
has raw_*_counters.nettrace.lines 'System\.Runtime/EventCounters'
rm raw_*_counters.nettrace.lines
has raw_*.nettrace.lines 'JittingStarted'

# A program that another tool resumes: spoor requests EventCounters 1 s after that.
start porter "$spoor" trace --diagnostic-port "$scratch/port.socket" --resume-runtime false --providers $counters,$start_events --rundown false -o held.nettrace 2>porter.err
until_true test -S "$scratch/port.socket" || fail "no port"
: >ready.held
DOTNET_DiagnosticPorts="$scratch/port.socket,nosuspend" start held dotnet "$app" paced 600000 >ready.held
until_true has_counters held.nettrace || fail "no EventCounters of a program that was resumed by another tool"
kill -INT $porter
wait $porter || fail "a port that resumes no program: $(cat porter.err)"
"$spoor" events held.nettrace >lines 2>err || fail "events: $(cat err)"
has lines '  System\.Runtime/EventCounters  '
has lines 'Code="late-counters"'

# A program that runs is asked without delay, in one session.
record_opened 1 running.nettrace trace -p $held --providers $counters,$start_events --rundown false
until_true has_counters running.nettrace || fail "no EventCounters of a running program"
kill -INT $recorder
wait $recorder || fail "a running program: $(cat running.nettrace.err)"
has_no running.nettrace.err 'EventCounters are enabled'
"$spoor" events running.nettrace >lines 2>err || fail "events: $(cat err)"
has lines '  System\.Runtime/EventCounters  '
has_no lines 'late-counters'

# A program that waits to be resumed by another tool is not asked, and Ctrl-C ends the trace.
DOTNET_DefaultDiagnosticPortSuspend=1 start waiting dotnet "$app" paced 600000 >waiting.out
until_true sh -c "ls ${TMPDIR:-/tmp}/dotnet-diagnostic-$waiting-*" || fail "the program that waits has no socket"
record_opened 1 waits.nettrace trace -p "$waiting,$held" --providers $counters --rundown false
until_true has_counters waits.nettrace || fail "no EventCounters beside a program that waits"
kill -INT $recorder
wait $recorder || fail "a program that waits: $(cat waits.nettrace.err)"
has waits.nettrace.err "Managed \($waiting\) was not traced: |dotnet \($waiting\) was not traced: "
"$spoor" events waits.nettrace >lines 2>err
has lines " $held/[0-9]+  System\.Runtime/EventCounters  "
has_no lines " $waiting/[0-9]+  System\.Runtime/EventCounters  "
until_true no_session $held || fail "a session stays: $(sessions $held)"
exit 0
