#!/bin/sh
# spoor diagnose of the web API of examples/faults on .NET 8 and 9: faults that are known by CPU samples, by events with stacks, by looks at the stacks, and by what
# requests await, each with its method as the first finding; and a healthy program has none.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
. "$here/faults_prelude"

# diagnosed ROUTE CLIENTS KIND METHOD: as in diagnose_live.sh.
diagnosed() {
	serve "$1" "$2"
	for seconds in 5 10 30; do
		rm -f x.nettrace
		code_of timeout 250 "$spoor" diagnose -p $subject --duration ${seconds}s -o x.nettrace --json
		expect_code 0 "$what, diagnose"
		cp out x.json
		! first "$3" "$4" || break
	done
	first "$3" "$4" || fail "$what: the first finding is not $3 in $4"
	until_true all_slots_free $subject || fail "$what: a session is left"
	kill -9 $subject $clients
}

for version in 8.0 9.0; do
	what=".NET $version"
	older_faults $version
	diagnosed native 3 native-cpu Faults.Archive.Pack
	diagnosed large 3 large-object-churn Faults.Pictures.Scale
	diagnosed throw 3 exception-storm Faults.Payment.Parse
	diagnosed block 16 sync-over-async Faults.Orders.Load
	diagnosed delay 4 async-delay Faults.Shipping.QuoteAsync
	diagnosed partner 4 slow-dependency Faults.Rates.FetchAsync
	serve healthy 2
	code_of "$spoor" diagnose -p $subject --duration 6s -o x.nettrace --json
	expect_code 0 "$what, diagnose of a healthy program"
	json out '[.processes[0].findings[].kind] - ["cpu-competition"] == []'
	kill -9 $subject $clients
done
exit 0
