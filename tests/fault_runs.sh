#!/bin/sh
# fault_runs.sh [RUNS [VERSION [SPOOR]]]: spoor diagnose finds each fault of examples/faults, with its method as the first finding, and none in the healthy program: so
# many times in a row (1). VERSION is 8.0, 9.0, or 10.0 for the SDK's own (10.0). On a machine with other work a diagnosis may need more time: see `seconds`.
#
#   tests/fault_runs.sh 10 9.0                   some 40 minutes
#   SPOOR_FAULTS_LOAD=2 tests/fault_runs.sh 10   beside two programs that compute all the time
#   SPOOR_FAULTS='lock deadlock' tests/fault_runs.sh 10
#
# Prints a line for each run: how many faults were found, and how long the diagnoses took. Exit code 1 if one was not found.
top=$(cd "$(dirname "$(realpath "$0")")/.." && pwd)
runs=${1:-1}
version=${2:-10.0}
wanted=${SPOOR_FAULTS:-}
load_count=${SPOOR_FAULTS_LOAD:-0}
set -- "${3:-$top/build/spoor}"
here=$top/tests/feature # not where this script stands
. "$top/tests/feature/prelude"
. "$here/programs/managed/prelude"
. "$here/faults_prelude"
[ "$version" = 10.0 ] || older_faults "$version"

# route, clients, kind, method ("" for any)
faults_table() {
	cat <<-END
		hotspot 3 cpu-hotspot Faults.Pricing.Quote
		native 3 native-cpu Faults.Archive.Pack
		garbage 3 gc-pressure Faults.Basket.Fill
		collect 3 induced-gc Faults.Cache.Trim
		large 3 large-object-churn Faults.Pictures.Scale
		throw 3 exception-storm Faults.Payment.Parse
		jit 3 jit-load Faults.Rules.Compile
		spawn 3 process-churn Faults.Mail.Send
		block 16 sync-over-async Faults.Orders.Load
		lock 8 lock-contention Faults.Stock.Reserve
		keep 4 managed-memory-growth Faults.History.Add
		keep-native 4 native-memory-growth
		handles 4 handle-leak
		finalize 2 finalizer-backlog Faults.Ticket.Finalize
		deadlock 8 deadlock Faults.Accounts.Move
		write 2 small-writes Faults.Journal.Append
		read 8 sync-io-on-pool Faults.Import.Read
		delay 4 async-delay Faults.Shipping.QuoteAsync
		slow 4 slow-requests Faults.Summary.BuildAsync
		partner 4 slow-dependency Faults.Rates.FetchAsync
		lookup 4 dns Faults.Phonebook.FindAsync
		secure 4 tls Faults.Vault.OpenAsync
	END
}

# judged KIND METHOD: diagnoses $subject, longer and longer, until its first finding is this one; `healthy` as the kind: until there is none.
judged() {
	for seconds in 5 10 30; do
		began=$(now_ms)
		code_of "$spoor" diagnose -p $subject --duration ${seconds}s --json -o x.nettrace
		took=$(($(now_ms) - began - seconds * 1000))
		[ "$took" -le "$longest" ] || longest=$took
		[ "$code" = 0 ] || continue
		cp out x.json
		if [ "$1" = healthy ]; then
			[ "$(value x.json '[.processes[0].findings[].kind] - ["cpu-competition"] | length')" != 0 ] || return 0
		elif [ "$(value x.json '.processes[0].findings - [.processes[0].findings[] | select(.kind == "cpu-competition")] | .[0] | "\(.kind) \(.method)"')" = "$1 $2" ]; then
			return 0
		fi
	done
	return 1
}

i=0
while [ $i -lt "$load_count" ]; do
	start spinner sh -c 'while :; do :; done'
	i=$((i + 1))
done
spinners=$started
missed_all=0
run=0
while [ $run -lt "$runs" ]; do
	run=$((run + 1))
	found=0
	missed=''
	longest=0
	faults_table >table
	echo "healthy 2 healthy" >>table
	while read -r route clients_wanted kind method <&3; do
		case " ${wanted:-$route} " in
		*" $route "*) ;;
		*) continue ;;
		esac
		serve "$route" "$clients_wanted"
		if judged "$kind" "$method"; then
			found=$((found + 1))
		else
			missed="$missed $route"
			echo "run $run: $route: not $kind in ${method:-any method}: $(value x.json '[.processes[0].findings[] | "\(.kind) in \(.method)"] | join(", ")' 2>&1)"
			missed_all=$((missed_all + 1))
		fi
		kill -9 $subject $clients
		wait $subject $clients 2>/dev/null
		started=$spinners
	done 3<table
	echo ".NET $version, run $run: $found found${missed:+, missed:$missed}; the answers came $longest ms after the end of their recordings at most (load $(cut -d' ' -f1 /proc/loadavg))"
done
[ $missed_all = 0 ] || fail "$missed_all faults were not found"
