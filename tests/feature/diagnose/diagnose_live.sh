#!/bin/sh
# spoor diagnose of running processes finds what needs more than a recording: blocked pool threads, locks, growing memory and descriptors, a slow finalizer, small
# writes, and what requests await: delays, slow servers, name lookups, TLS handshakes;
# it names the user's method, leaves a recording for the commands that it proposes, and no session. The recording alone gives the same verdict, byte for
# byte. A recorder that hangs does not hang the verb.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
. "$here/faults_prelude"

# diagnosed KIND METHOD: diagnoses $subject, longer and longer, until its first finding is this one. A busy machine may give it too little time at first.
diagnosed() {
	for seconds in 5 10 30; do
		rm -f x.nettrace
		code_of "$spoor" diagnose -p $subject --duration ${seconds}s -o x.nettrace --json
		expect_code 0 "diagnose"
		[ -s x.nettrace ] || fail "there is no recording"
		cp out x.json
		! first "$1" "$2" || break
	done
	first "$1" "$2" || fail "the first finding is not $1 in $2"
	code_of "$spoor" diagnose x.nettrace --json
	expect_code 0 "diagnose of the recording"
	cmp out x.json || fail "$1: the recording gives another verdict"
	json x.json '.processes[0].findings[0] | .confidence > 0.4 and .confidence <= 1 and (.evidence | length) > 0 and .advice != ""'
	until_true no_session $subject || fail "a session is left"
	kill -9 $subject
}

served() {
	serve "$1" "$2"
	diagnosed "$3" "$4"
	kill -9 $clients
}

served block 16 sync-over-async Faults.Orders.Load
served lock 8 lock-contention Faults.Stock.Reserve
served keep 4 managed-memory-growth Faults.History.Add
served keep-native 4 native-memory-growth ''
served handles 4 handle-leak ''
served finalize 2 finalizer-backlog Faults.Ticket.Finalize
served deadlock 8 deadlock Faults.Accounts.Move
# The waits began before: the owners are read from memory, which root may do.
if [ "$(id -u)" = 0 ]; then
	json x.json '.processes[0].facts | .circle_threads == 2 and .circle_share > 0'
fi

served write 2 small-writes Faults.Journal.Append
served read 8 sync-io-on-pool Faults.Import.Read

served delay 4 async-delay Faults.Shipping.QuoteAsync
served slow 4 slow-requests Faults.Summary.BuildAsync
served partner 4 slow-dependency Faults.Rates.FetchAsync
served lookup 4 dns Faults.Phonebook.FindAsync
served secure 4 tls Faults.Vault.OpenAsync

# A healthy program has no finding, except that this machine is busy.
serve healthy 2
code_of "$spoor" diagnose -p $subject --duration 6s -o x.nettrace --json
expect_code 0 "diagnose of a healthy program"
json out '[.processes[0].findings[].kind] - ["cpu-competition"] == []'
json out '.processes[0].verdict | test("CPU [0-9.]+ %")'
kill -9 $subject $clients

# Programs of another shape: no server. The pool's workers wait for a task that never ends.
begin subject starve 3
until_true grep -q starved ready.subject || fail "the pool does not starve"
diagnosed sync-over-async Starved.Block

# Ended by a signal: the recording up to then is judged, and no session is left.
begin subject burn 100000
start verb "$spoor" diagnose -p $subject --duration 1000s -o y.nettrace >verb.out 2>verb.err
sampled() {
	"$spoor" report --json y.nettrace >y.json && [ "$(value y.json .samples)" -gt 0 ]
}
until_true sampled || fail "the recording has no samples: $(cat verb.err)"
kill -INT $verb
wait $verb || fail "interrupted: exit code $?: $(cat verb.err)"
has verb.out "^Managed \($subject\)  "
code_of "$spoor" diagnose y.nettrace
cmp out verb.out || fail "the recording gives another text"
until_true no_session $subject || fail "a session is left"

# The recorder hangs: it is killed, and the verb ends.
rm -f y.nettrace
start verb "$spoor" diagnose -p $subject --duration 2s -o y.nettrace >verb.out 2>verb.err
until_true test -s y.nettrace || fail "the recording does not begin: $(cat verb.err)"
recorder=$(cut -d ' ' -f 1 /proc/$verb/task/$verb/children)
kill -STOP "$recorder"
code=0
wait $verb || code=$?
[ $code = 1 ] || fail "a recorder that hangs: exit code $code: $(cat verb.err)"
has verb.err 'the recorder did not end and was killed'
! kill -0 "$recorder" 2>/dev/null || fail "the recorder runs on"
until_true no_session $subject || fail "a session is left"

# Without standard streams, whose numbers other descriptors then get.
rm -f y.nettrace
"$spoor" diagnose -p $subject --duration 1s -o y.nettrace --json <&- 2>&- >y.json || fail "diagnose without standard input"
"$spoor" diagnose y.nettrace --json >out
cmp out y.json || fail "without standard input: the recording gives another verdict"
json y.json '.processes[0].facts | .workers >= 0 and .descriptors > 0'

# No event with a stack is requested at level 5, which costs a program that allocates much.
"$spoor" events --event Runtime --json y.nettrace >out 2>err || fail "no event of the runtime: $(cat err)"
json_lines out 'map(select(.event == "Runtime")) | length == 1 and all(.[]; .fields.Sessions | contains("\nevents Microsoft-Windows-DotNETRuntime:0x14001:4, "))'

# A native process that does nothing has no samples.
start sleeper sleep 1000
until_true grep -qx sleep /proc/$sleeper/comm || fail "sleep does not start"
code_of "$spoor" diagnose -p $sleeper --duration 2s -o x.nettrace
expect_code 0 "diagnose of an idle native process"
has out "^sleep \($sleeper\)  no finding: CPU 0.0 % of [0-9]+ CPUs, "
has_no err 'not in this recording'
cp out x.txt
code_of "$spoor" diagnose x.nettrace
cmp out x.txt || fail "an idle native process: the recording gives another verdict"
kill $sleeper

# Options that exclude each other, and a process that does not exist.
code_of "$spoor" diagnose -p $subject --from 1s
expect_code 2 "--from of a running process"
code_of "$spoor" diagnose -p 4194303 --duration 1s
expect_code 1 "a process that does not exist"
