#!/bin/sh
# spoor counters of a real process: values of a Meter and an EventSource in every output (lines, table, CSV, JSON, Prometheus, Graphite), two tools with different limits, commands, and
# no session left.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

clean_up_more() {
	[ ! -e "$scratch/carbon/carbon.pid" ] || kill "$(cat "$scratch/carbon/carbon.pid")" 2>/dev/null
}

begin shop meters 600000
mine='--counters Shop.Orders,Shop-Counters'

# The program takes 100 orders a second, with known durations: values, tags, quantiles, both kinds of EventCounters.
code_of "$spoor" counters -p $shop $mine --count 3
expect_code 0 "three intervals"
has out '^[0-9:]{8} Managed \([0-9]+\) +Shop\.Orders +shop\.temperature region=north +21\.5 Cel$'
has out 'Shop\.Orders +shop\.duration region=north p99 +9\.99 ms +p50 6\.00 ms +p95 9\.99 ms +[0-9.]+ /s$'
has out 'Shop\.Orders +shop\.orders kind=book,region=north +[0-9.]+ /s +[0-9,]+ since session start$'
has out 'Shop\.Orders +shop\.orders kind=pen, "blue",region=north +[0-9.]+ /s +[0-9,]+ since session start$'
has out 'Shop\.Orders +shop\.open region=north +-?[0-9]'
has out 'Shop-Counters +Order Size +5\.50 kg$'
has out 'Shop-Counters +Order Rate +[0-9.]+ /s$'
[ "$(grep -c 'Order Size' out)" = 3 ] || fail "three intervals have $(grep -c 'Order Size' out) lines of a counter"
has_no out 'System\.Runtime'

# The sum of the intervals is the value of the counter.
code_of "$spoor" counters -p $shop --counters 'Shop.Orders[shop.orders]' --refresh-interval 100ms --count 15 --json
expect_code 0 "intervals of 100 ms"
has_no out shop.duration
jq -r 'select(.tags | test("kind=book")) | "\(.added) \(.since_start)"' out |
	awk '{ sum += $1; last = $2 } END { if (NR < 12 || sum < last - 0.01 || sum > last + 0.01 || last < 5) { print NR, sum, last; exit 1 } }' ||
	fail "the sum of the intervals is not the value of the counter"

# The runtime's own counters, values that are derived from them, and only the counters that were asked for.
code_of "$spoor" counters -p $shop --count 2
expect_code 0 "the default"
has out 'Managed \([0-9]+\) +CPU \(of one\) +[0-9.]+ %$'
has out 'Managed \([0-9]+\) +GC pause +[0-9.]+ %$'
has out 'Managed \([0-9]+\) +allocated +[0-9.]+ [kMG]?B/s$'
has out 'System\.Runtime +dotnet\.gc\.collections gc\.heap\.generation=gen2'
has_no out 'alloc-rate|Allocation Rate'
code_of "$spoor" counters -p $shop --count 1 --counters 'EventCounters\System.Runtime[alloc-rate,cpu-usage]'
has out 'System\.Runtime +Allocation Rate +'
has out 'System\.Runtime +CPU Usage +'
[ "$(grep -c System.Runtime out)" = 2 ] || fail "two counters were asked for"

# Names that the process does not have.
code_of "$spoor" counters -p $shop --counters 'System.Rutime,Shop-Counters[Order-Sise,order-size],Shop.Nothing' --duration 10s
has err "has sent no counter of 'System\.Rutime'; did you mean 'System\.Runtime'\?$"
has err "has sent no counter of 'Shop-Counters\[Order-Sise\]'"
has err "has sent no counter of 'Shop\.Nothing'; spoor counters -p $shop --list shows which it has\.$"
[ "$(grep -c 'has sent no counter' err)" = 3 ] || fail "three names are missing"

code_of "$spoor" counters -p $shop --list
expect_code 0 "--list"
has out '^  shop\.duration +Histogram`1 +s +Time an order takes \[region=north\]$'
has out '^  dotnet\.gc\.pause\.time '
has out '^System\.Runtime \(EventCounters\)$'

# Files. A JSON file is valid after SIGKILL, too.
code_of "$spoor" counters -p $shop $mine --count 2 --format csv -o shop.csv
expect_code 0 "CSV"
[ "$(head -n 1 shop.csv)" = 'Timestamp,Provider,Counter Name,Counter Type,Mean/Increment' ] || fail "not dotnet-counters' columns"
has shop.csv '^[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9:]{8},Shop\.Orders,shop\.duration \(s\)\[region=north;Percentile=50\],Metric,0\.0059967041015625$'
has shop.csv ',Shop\.Orders,"shop\.orders \(\{order\} / 1 sec\)\[kind=pen; ""blue"";region=north\]",Rate,[0-9.]+$'
[ "$(stat -c %a shop.csv)" = 600 ] || fail "a file is its owner's alone"
grows() {
	[ "$(stat -c %s killed.json)" -gt "$1" ]
}
for size in 20000 30000 50000; do
	rm -f killed.json
	"$spoor" counters -q -p $shop --refresh-interval 0.1 -o killed.json &
	writer=$!
	started="$started $writer"
	until_true grows $size || fail "the file does not grow"
	kill -9 $writer
	wait $writer 2>/dev/null
	[ "$(tail -n 1 killed.json)" = ']}' ] || fail "a killed writer left: $(tail -c 200 killed.json)"
	json killed.json '.Events | length > 30'
done
code_of "$spoor" counters -p $shop $mine -o /dev/full --csv
expect_code 1 "a full disk"
has err "^cannot write '/dev/full': No space left on device"

# Two tools with different limits: the second one uses the limits of the first one, which loses nothing.
"$spoor" counters -p $shop --counters Shop.Orders --refresh-interval 0.5 --maxHistograms 7 --csv >first.csv 2>first.err &
first=$!
started="$started $first"
until_true grep -q Percentile=99 first.csv || fail "the first tool has no values: $(cat first.err)"
code_of "$spoor" counters -p $shop --counters Shop.Orders --refresh-interval 2 --count 2 --csv
expect_code 0 "the second tool"
has err 'another tool reads its Meters every 0\.5 s, 1000 time series and 7 histograms at most'
has out 'shop\.orders \(\{order\} / 2 sec\)\[kind=book;region=north\],Rate,[1-9][0-9]*'
intervals=$(grep -c Percentile=99 first.csv)
more_intervals() {
	[ "$(grep -c Percentile=99 first.csv)" -ge $((intervals + 3)) ]
}
until_true more_intervals || fail "the first tool gets no more values"
kill -INT $first
wait $first || fail "the first tool failed: $(cat first.err)"

# The table, on a small terminal that gets keys.
if command -v script >/dev/null; then
	: >table
	# Each key waits for the effect of the one before.
	(until_true grep -q 'GC pause' table && printf 'p' && until_true grep -q '(paused)' table && printf 'r' && sleep 0.3 && printf 'q') |
		timeout 200 script -fqec "stty cols 60 rows 12; '$spoor' counters -p $shop" table >/dev/null || fail "the table's end"
	grep -q "$(printf '\033')\[?1049h" table || fail "no table"
	grep -q "$(printf '\033')\[?1049l" table || fail "the earlier screen was not restored"
	has table 'GC pause'
	has table '\(paused\)'
	has table 'rows above'
else
	echo "the table was not tested: no script(1) here"
fi

# Prometheus.
if command -v curl >/dev/null; then
	start server "$spoor" counters -p $shop $mine --refresh-interval 0.2 --prometheus 127.0.0.1:0 2>server.err
	until_true grep -q '^metrics' server.err || fail "no server"
	url=$(sed -n 's/^metrics *//p' server.err)
	fetched() {
		curl -sf "$url" >page && grep -q '^shop_orders_total' page
	}
	until_true fetched || fail "no page: $(cat server.err)"
	has page '^# TYPE shop_orders_total counter$'
	has page '^shop_orders_total\{process="Managed",pid="[0-9]+",meter="Shop\.Orders",meter_version="1\.2",kind="pen, \\"blue\\"",region="north"\} [0-9]+$'
	has page '^shop_duration_seconds\{.*,quantile="0\.99",region="north"\} 0\.0099'
	has page '^shop_duration_seconds_count\{.*\} [0-9]+$'
	has page '^shop_counters_order_size'
	[ "$(curl -s -o /dev/null -w '%{http_code}' "${url%/metrics}/")" = 404 ] || fail "another page than /metrics"
	[ "$(curl -s -X POST -o /dev/null -w '%{http_code}' "$url")" = 405 ] || fail "POST"
	if command -v promtool >/dev/null; then
		promtool check metrics <page >promtool.out 2>&1 || grep -q 'error' promtool.out && fail "promtool: $(cat promtool.out)"
	fi
	kill $server
else
	echo "the page for Prometheus was not tested: no curl here"
fi

# Graphite: the values that the collector has stored.
if command -v carbon-cache >/dev/null && command -v whisper-fetch >/dev/null; then
	mkdir -p carbon/whisper carbon/log
	port=$((20000 + $$ % 20000))
	cat >carbon/carbon.conf <<END
[cache]
STORAGE_DIR = $scratch/carbon/
LOCAL_DATA_DIR = $scratch/carbon/whisper/
CONF_DIR = $scratch/carbon/
LOG_DIR = $scratch/carbon/log/
PID_DIR = $scratch/carbon/
MAX_CREATES_PER_MINUTE = inf
MAX_UPDATES_PER_SECOND = 5000
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = $port
PICKLE_RECEIVER_INTERFACE = 127.0.0.1
PICKLE_RECEIVER_PORT = $((port + 1))
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = $((port + 2))
ENABLE_TAGS = False
END
	printf '[all]\npattern = .*\nretentions = 1s:10m\n' >carbon/storage-schemas.conf
	# The collector starts later: the first lines wait for it.
	start sender "$spoor" counters -p $shop $mine --graphite 127.0.0.1:$port 2>sender.err
	until_true grep -q 'Connection refused' sender.err || fail "no message about a missing collector"
	carbon-cache --config="$scratch/carbon/carbon.conf" --pidfile="$scratch/carbon/carbon.pid" --logdir="$scratch/carbon/log" start >carbon/out 2>&1 ||
		fail "carbon does not start: $(tail -n 3 carbon/out)"
	stored=carbon/whisper/spoor/$(hostname | tr . _)/Managed/Shop_Orders/shop
	has_temperature() {
		whisper-fetch "$stored/temperature/north.wsp" 2>/dev/null | grep -q '21\.5'
	}
	until_true has_temperature || fail "carbon has: $(find carbon/whisper -name '*.wsp' | head -n 20)"
	has sender.err 'takes nothing: Connection refused'
	has_all() {
		for name in temperature orders/book duration; do
			[ -e "$stored/$name" ] || [ -e "$stored/$name.wsp" ] || return 1
		done
		whisper-fetch "$stored/duration/north/p99.wsp" | grep -q '0\.00999'
	}
	until_true has_all || fail "carbon has other values: $(find carbon/whisper -name '*.wsp' | head -n 20)"
	kill $sender
	wait $sender 2>/dev/null
	kill "$(cat carbon/carbon.pid)"
else
	echo "Graphite was not tested: no carbon-cache here (package graphite-carbon)"
fi

# Two processes, one that ends, and one without .NET.
begin other meters 600000
code_of "$spoor" counters -p $shop -p $other $mine --count 1 --csv
expect_code 0 "two processes"
has out "^Timestamp,.*,Process$"
has out ",Managed \\($shop\\)$"
has out ",Managed \\($other\\)$"
start counted timeout 250 "$spoor" counters -p $other $mine >ends.out 2>err
until_true grep -q 'Order Size' ends.out || fail "no values of a process that ends later: $(cat err)"
kill -9 $other
wait $counted && code=0 || code=$?
expect_code 0 "a process that ends"
code_of "$spoor" counters -p $$ --count 1
expect_code 1 "a shell"
has err "^no counters of "

# A command from its first instruction, with its children. Its output is not changed, and spoor returns its exit code.
cat >command.sh <<SH
echo begins
dotnet '$app' meters 2500
sh -c "dotnet '$app' meters 2500"
exit 7
SH
code_of timeout 250 "$spoor" counters --counters Shop.Orders,System.Runtime --refresh-interval 0.5 --json -o command.json -- sh command.sh
expect_code 7 "a command"
has out '^begins$'
[ "$(grep -c '^ready$' out)" = 2 ] || fail "the command's programs did not run to their ends"
! ls "${TMPDIR:-/tmp}"/spoor-counters-* 2>/dev/null || fail "its socket is left"
json command.json '[.Events[].pid] | unique | length == 2'
# Nothing of the start is missing: the sum of the intervals is the value, of an observable counter of the runtime and of the program's own.
for name in dotnet.jit.compiled_methods dotnet.gc.heap.total_allocated shop.orders; do
	value command.json '.Events[] | select(.counter == $a) | "\(.added) \(.since_start) \(.pid):\(.tags)"' $name |
		awk '{ each = $0; sub(/^[^ ]* [^ ]* /, "", each); sum[each] += $1; last[each] = $2; n++ }
			END { for (each in sum) { series++; if (sum[each] < last[each] * 0.999999 || sum[each] > last[each] * 1.000001) { print each, sum[each], last[each]; bad = 1 } }
			exit bad || series < 2 || n < 6 }' || fail "the sum of the intervals of $name is not its value since the start"
done

# spoor enables the runtime's EventCounters after its start.
code_of timeout 250 "$spoor" counters --counters 'EventCounters\System.Runtime[alloc-rate]' --refresh-interval 0.5 -- dotnet "$app" meters 4000
expect_code 0 "EventCounters of a command"
has out 'System\.Runtime +Allocation Rate +'
# Many starts: EventCounters that are enabled during the start would lock up some of them. (The interval is long: .NET 10 may hang when a program ends during the first
# collection of its Meters.)
for i in $(seq 12); do
	code_of timeout 250 "$spoor" counters -q --counters System.Runtime,Shop.Orders --refresh-interval 60 -- dotnet "$app" meters 10
	expect_code 0 "start $i"
done

# The count ends the counting; the command continues, and programs that it starts later do not wait for spoor.
before=$(date +%s)
cat >late.sh <<SH
dotnet '$app' meters 2500
dotnet '$app' meters 100
exit 5
SH
code_of timeout 250 "$spoor" counters -q --counters Shop.Orders --refresh-interval 0.5 --count 1 -- sh late.sh
expect_code 5 "a command that outlives its counting"
[ "$(grep -c '^ready$' out)" = 2 ] || fail "the second program did not run"
[ $(($(date +%s) - before)) -lt 150 ] || fail "the second program had to wait"

# Killed: programs of the command do not wait for spoor.
start killed "$spoor" counters -q -- sh late.sh >out
until_true grep -q ready out || fail "the command does not start"
kill -9 $killed
wait $killed
both_ran() {
	[ "$(grep -c '^ready$' out)" = 2 ]
}
until_true both_ran || fail "a command whose counting was killed does not come to its end: $(cat out)"

# A signal is passed to the command.
start counted "$spoor" counters -q -- sh -c "dotnet '$app' meters 600000; exit 9" >out
until_true grep -q ready out || fail "the command does not start"
shell=$(pgrep -P "$counted" -x sh)
program=$(pgrep -P "$shell")
kill -TERM $counted
wait $counted
[ $? = 143 ] || fail "a command that was ended by the signal it was passed"
[ ! -e "/proc/$shell" ] || fail "the command did not get the signal"
kill "$program" # the shell's child does not get the signal

# Ctrl-Z, which stops the command too, ends the counting. Both stop, both continue, and spoor returns the command's exit code. (timeout(1) makes a process group that can be stopped.)
start limiter timeout 250 "$spoor" counters -q -- sh -c "dotnet '$app' meters 5000; exit 6" >out
until_true grep -q ready out || fail "the command does not start"
counted=$(cut -d ' ' -f 1 /proc/$limiter/task/$limiter/children)
shell=$(pgrep -P "$counted" -x sh)
program=$(pgrep -P "$shell")
started="$started $counted $program"
kill -TSTP "$shell" "$program" "$counted"
for each in $counted $shell $program; do
	until_true grep -q '^State:.T' "/proc/$each/status" ||
		fail "Ctrl-Z does not stop $each: $(cat "/proc/$each/comm")"
done
kill -CONT "$counted" "$shell" "$program"
wait $limiter
[ $? = 6 ] || fail "a command after Ctrl-Z"

# A command without .NET, one that cannot be run, ports.
code_of "$spoor" counters -- sh -c 'exit 3'
expect_code 1 "no .NET"
has err '^nothing was counted: no \.NET runtime came to the port\.$'
code_of "$spoor" counters -- "$scratch/nowhere"
expect_code 127 "a command that is none"
has err "^cannot run '.*/nowhere': No such file"
start porter "$spoor" counters -q --counters Shop.Orders --dport "$scratch/port.socket" --count 1 --csv >ported
until_true test -S "$scratch/port.socket" || fail "no port"
[ "$(stat -c %a "$scratch/port.socket")" = 600 ] || fail "the port is open to others"
DOTNET_DiagnosticPorts=$scratch/port.socket dotnet "$app" meters 8000 >out || fail "the program with a listen port"
wait $porter || fail "the counters of a port"
has ported '^Timestamp,.*,Process$'
has ported 'shop\.temperature'
[ ! -e "$scratch/port.socket" ] || fail "the port is left"
own=$(ls -t "${TMPDIR:-/tmp}"/dotnet-diagnostic-$shop-*-socket | head -n 1)
code_of timeout 250 "$spoor" counters --diagnostic-port "$own,connect" --counters Shop.Orders --count 1
expect_code 0 "connect"
has out "^[0-9:.]+ Managed \($shop\)  Shop\.Orders  shop\.temperature"
code_of "$spoor" counters --diagnostic-port "$scratch/nobody,connect"
expect_code 1 "nobody listens"
has err "cannot connect to '.*/nobody': No such file"

# Output that cannot be written is a failure. A file ends with its last whole row.
code_of "$spoor" counters -p $shop $mine --count 2
expect_code 0 "a reader that reads all"
for form in lines csv json; do
	"$spoor" counters -p $shop $mine --count 2 --refresh-interval 0.2 -f $form >/dev/full 2>err && fail "$form into a full device succeeds"
	has err '^cannot write the result to standard output: No space left on device\.$'
done
for form in json csv; do
	(
		ulimit -f 4
		timeout 250 "$spoor" counters -p $shop --refresh-interval 0.1 -o limited.$form >/dev/null 2>err
		echo $? >code
	)
	[ "$(cat code)" = 1 ] || fail "exit code $(cat code) at the limit of file sizes"
	has err "^cannot write 'limited\.$form': File too large"
done
[ -s limited.csv ] && [ "$(tail -c 1 limited.csv)" = "" ] || fail "the last row is torn"
json limited.json '.Events | length > 3'

# More sessions than a runtime has slots (64), one after the other; some of them are killed.
for i in $(seq 66); do
	"$spoor" counters -q -p $shop --counters Shop.Orders --refresh-interval 0.1 --count 1 >/dev/null 2>err || fail "session $i"
done
slots_used() {
	[ "$(free_slots $shop)" -lt 64 ]
}
for i in 1 2 3; do
	start reader "$spoor" counters -q -p $shop >/dev/null 2>&1
	until_true slots_used || fail "no session is opened"
	kill -9 $reader
	wait $reader 2>/dev/null
	until_true all_slots_free $shop || fail "a session is left: $(free_slots $shop) of 64 slots are free"
done
code_of "$spoor" counters -p $shop $mine --count 1
expect_code 0 "after all of them"
has out 'shop\.temperature'
