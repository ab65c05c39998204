#!/bin/sh
# The web API that the demo shows, under its load: the function that burns is the first of its process, in the report and in the flame graph. Only the
# samples of that process count, because the machine may be busy.
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
load=$(dirname "$spoor")/examples/load
[ -x "$load" ] || skip "the examples are not built"
sh -n "$top/demo" || fail "the demo is no shell script"
. "$top/tests/programs"
program webapi
start shop dotnet "$program" "$scratch/port" >shop.out 2>&1
for i in 1 2 3 4 5 6; do
	! until_true test -s port || break
done
[ -s port ] || fail "the web API does not start: $(head -n 3 shop.out)"
"$load" "$(cat port)" 1 /cpu /wait /reserve /alloc /throw >load.out || fail "the web API does not answer on every route: $(cat load.out)"
start clients "$load" "$(cat port)" 100 /cpu=1 /wait=4 /reserve=3 /alloc=1 /throw=1 >/dev/null

# A busy machine gives it less time: until there are enough samples to tell.
for seconds in 2 5 10 20; do
	code_of "$spoor" record -p "$shop" -F 499 --duration ${seconds}s -o shop.nettrace
	expect_code 0 "record of the web API"
	cp err record.err
	folded shop.nettrace folds
	[ "$(frames folds '.')" -lt 200 ] || break
done
paste_next record.err
code_of "$spoor" report shop.nettrace
awk '/^ +self +total/ { getline; print; exit }' out >first
has first 'Pricing\.Burn\(TimeSpan\) +Shop'
burning=$(frames folds 'Pricing\.Burn')
[ $((burning * 3)) -ge "$(frames folds '.')" ] || fail "$burning of $(frames folds '.') samples are in what burns"

# What its threads wait for: the lock of one route, by name.
is_root || exit 0
for seconds in 2 5 10 20; do
	code_of "$spoor" record -q -p "$shop" --off-cpu --call-graph dwarf --duration ${seconds}s -o waits.nettrace
	expect_code 0 "record of the web API's waits"
	"$spoor" report waits.nettrace --off-cpu --json >waits.json 2>err || fail "no report of the web API's waits"
	value waits.json '[.processes[].waits[] | select(.waits_for == "Monitor.Enter" or .waits_for == "Monitor.Enter_Slowpath") | select((.where // "") | contains("Warehouse.Reserve"))] | length' >count
	[ "$(cat count)" = 0 ] || break
done
json waits.json '[.processes[].waits[] | select(.cause == "lock") | select((.where // "") | contains("Warehouse.Reserve"))] | length > 0'
json waits.json '[.processes[].waits[] | select(.waits_for == "Thread.Sleep") | select((.where // "") | contains("Warehouse.Reserve"))] | length > 0 and all(.cause == "sleep")'
