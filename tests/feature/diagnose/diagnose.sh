#!/bin/sh
# spoor diagnose names each fault of examples/faults, and of console programs, with the method of the user that causes it, as its first finding, from a
# recording; a healthy program has no finding.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
. "$here/faults_prelude"

# diagnosed KIND METHOD: records $subject, longer and longer, until its first finding is this one. A busy machine may give it too little time at first.
diagnosed() {
	for seconds in 3 6 12 30; do
		code_of "$spoor" record -q -p $subject -o x.nettrace --duration ${seconds}s
		expect_code 0 "record"
		code_of "$spoor" diagnose x.nettrace --json
		expect_code 0 "diagnose --json"
		cp out x.json
		! first "$1" "$2" || break
	done
	first "$1" "$2" || {
		"$spoor" diagnose x.nettrace
		fail "the first finding is not $1 in $2"
	}
	json x.json '.processes[0].findings[0] | .confidence > 0.5 and .confidence <= 1 and (.evidence | length) > 0 and .advice != "" and .cost.share >= 0'
	code_of "$spoor" diagnose x.nettrace --fail-on "$1"
	expect_code 1 "--fail-on of a kind that was found"
	has out "^1  $1: "
	[ -z "$2" ] || has out "$2"
	kill -9 $subject
}

served() {
	serve "$1" 3
	diagnosed "$2" "$3"
	kill -9 $clients
}

served hotspot cpu-hotspot Faults.Pricing.Quote
served native native-cpu Faults.Archive.Pack
served garbage gc-pressure Faults.Basket.Fill
served collect induced-gc Faults.Cache.Trim
served large large-object-churn ''
served throw exception-storm Faults.Payment.Parse
served jit jit-load Faults.Rules.Compile
served spawn process-churn Faults.Mail.Send

serve healthy 3
code_of "$spoor" record -q -p $subject -o x.nettrace --duration 3s
expect_code 0 "record"
code_of "$spoor" diagnose x.nettrace --fail-on cpu-hotspot --fail-on gc-pressure
expect_code 0 "a healthy program"
has out '^Faults \([0-9]+\)  no finding: CPU [0-9.]+ % of [0-9]+ CPUs, .*over [0-9.]+ s$'
has out 'not judged from a recording: sync-over-async'
code_of "$spoor" diagnose x.nettrace --fail-on deadlock
expect_code 2 "--fail-on of a kind that needs the stacks"
has err '^--fail-on deadlock: no process could be judged for it'
kill -9 $subject $clients

# A deadlock that begins during the recording is known by the owners of the locks.
rm -f port
start subject dotnet "$faults" "$scratch/port"
until_true test -s port || fail "the web API does not start"
record_opened 1 x.nettrace record -p $subject --event-stacks
start clients "$load" "$(cat port)" 600 /deadlock=8 >/dev/null
# deadlocked: the recording has one
deadlocked() {
	"$spoor" report --locks --json x.nettrace >locks.json && [ "$(value locks.json '.processes[0].deadlocks | length')" = 1 ]
}
until_true deadlocked || fail "no deadlock: $(cat locks.json)"
kill -INT $recorder
wait $recorder || fail "the recording failed: $(cat x.nettrace.err)"
json locks.json '.processes[0].deadlocks[0] | length == 2 and .[0].tid == .[1].owner_tid and .[1].tid == .[0].owner_tid and all(.method | startswith("Faults.Accounts.Move"))'
code_of "$spoor" report --locks x.nettrace
has out '^  deadlock +.* waits since [0-9.]+ m?s for lock 0x[0-9a-f]+ of '
"$spoor" diagnose x.nettrace --json >x.json || fail "diagnose"
first deadlock Faults.Accounts.Move || fail "the first finding is no deadlock: $(cat x.json)"
kill -9 $subject $clients

# Children that are never sampled count as well. Their parent computes too, so that it has samples, and more CPU time than any of them.
code_of "$spoor" record -q -o x.nettrace -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; i=0; while [ $i -lt 40 ]; do "$0" spin 0; i=$((i + 1)); done' "$target"
expect_code 0 "a recording of short processes"
code_of "$spoor" diagnose x.nettrace --json
expect_code 0 "diagnose of short processes"
json out '.processes[0].facts.children == 40'

# Programs of another shape: no server, no pool.
console() {
	rm -f go end
	begin subject "$1" 100000
	touch go
	diagnosed "$2" "$3"
}
# Its collections take 1 to 10 % of the time, as the machine is busy, so they are the first finding or the second.
begin subject paced 100000
code_of "$spoor" record -q -p $subject -o x.nettrace --duration 12s
expect_code 0 "record"
code_of "$spoor" diagnose x.nettrace --json
expect_code 0 "diagnose --json"
json out 'any(.processes[0].findings[]; .kind == "induced-gc" and (.evidence | any(test("Hot.Run"))))'
kill -9 $subject
console throws exception-storm Told.Throw
