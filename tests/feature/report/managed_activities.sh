#!/bin/sh
# record --activities takes requests, awaits and calls with their stacks; report --requests, --http and --async have their exact numbers, durations and methods. The
# session ends with the number of events, the recording does not.
own_machine=yes
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
. "$here/faults_prelude"
command -v curl >/dev/null || skip "curl is not installed"

# get ROUTE TIMES
get() {
	for _ in $(seq "$2"); do
		curl -sf --max-time 100 "http://127.0.0.1:$(cat port)$1" >/dev/null || fail "no answer of $1"
	done
}

# stop: ends the recording.
stop() {
	kill -INT $recorder
	wait $recorder || fail "the recording failed: $(cat x.nettrace.err)"
}

rm -f port
start subject dotnet "$faults" "$scratch/port"
until_true test -s port || fail "the web API does not start"
# The first calls make their clients, servers and certificate.
get /partner 1
get /secure 1
record_opened 1 x.nettrace record -p $subject --activities 100000
get /delay 3
get /slow 2
get /partner 2
get /secure 4
stop
"$spoor" report -v x.nettrace >report || fail "report"
has report "^opened in .*; activities, 16 MB, with stacks; exceptions .*; rundown"
"$spoor" report --requests --json x.nettrace >requests.json || fail "report --requests"
json requests.json '.processes[0] | .request_count == 11 and .unfinished_count == 0'
json requests.json '.processes[0].routes[] | select(.route == "GET /delay") | .count == 3 and .total_ns >= 2390000000'
"$spoor" report --http --json x.nettrace >http.json || fail "report --http"
json http.json '.processes[0].targets | map(select(.kind == "http")) | length == 1 and (.[0] | .count == 2 and .failed == 0 and .p50_ns >= 680000000)'
json http.json '.processes[0].targets[] | select(.kind == "http") | .method | startswith("Faults.Rates.FetchAsync")'
json http.json '.processes[0].targets[] | select(.target == "vault") | .count + .unfinished_count == 4 and (.method | startswith("Faults.Vault.OpenAsync"))'
json http.json '[.processes[0].targets[] | select(.kind == "connect") | .count + .unfinished_count] | add == 4'
"$spoor" report --async --json x.nettrace >async.json || fail "report --async"
json async.json '.processes[0].methods[] | select(.method | startswith("Faults.Shipping.QuoteAsync")) | .count == 3 and .self_ns >= 2390000000'
json async.json '.processes[0].methods[] | select(.method | startswith("Faults.Summary.BuildAsync")) | .count == 8 and .total_ns >= 2390000000 and .self_ns < .total_ns / 2'
json async.json '[.processes[0].methods[] | select(.method | startswith("Faults.Summary.Read")) | .count] | add == 8'
code_of "$spoor" report --async x.nettrace -p $subject --from 1000s
expect_code 1 "a time without events"
has err '^--from counts from the begin of the recording, which is .* lies after its end'
code_of "$spoor" report --http x.nettrace
expect_code 0 "report --http as text"
has out '^Faults .*: [0-9]+ calls over the network in '
has out ' vault$'
code_of "$spoor" report x.nettrace
has out '^--http +[0-9]+ calls; '
has out '^--requests +11, '

# After its first event the session ends: the requests that follow are not observed, and the samples and collections are.
record_opened 1 x.nettrace record -p $subject --activities 1
get /delay 1
until_true sh -c "$(command -v "$spoor") report -v x.nettrace >/dev/null" || fail "no report"
get /delay 5
get /collect 3
stop
"$spoor" report --requests --json x.nettrace >requests.json || fail "report --requests"
json requests.json '.processes[0] | .request_count + .unfinished_count <= 3'
"$spoor" report --gc --json x.nettrace >gc.json || fail "report --gc"
json gc.json '.processes[0].collections | map(select(.reason | test("nduced"))) | length >= 3'
json gc.json '.processes[0] | all(.collections[]; (.part_bytes | length == 5) and (.part_bytes | add) == .heap_bytes) and .pause_p99_ns >= .pause_p95_ns and (.cpu_in_pauses_ns // 0) + (.cpu_beside_ns // 0) >= 0'
until_true no_session $subject || fail "a session is left"

code_of "$spoor" record -p $subject --activities 10 --no-events
expect_code 2 "--activities without events"
has err '^--activities and --no-events exclude each other'
code_of "$spoor" report --async "$here/../data/nettrace/runtime-v4.nettrace"
has out '^no await is in this selection; spoor record --activities'
