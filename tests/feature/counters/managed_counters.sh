#!/bin/sh
# spoor counters prints the values that a program counts, in each form, and tells two tools' limits apart: of a Meter and an EventSource, as lines, table, CSV
# and JSON, of two processes, and to outputs that cannot be written.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

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
# A runtime on a busy machine may leave out a counter in an interval, but never sends it twice.
[ "$(grep -c 'Order Size' out)" -le 3 ] || fail "three intervals have $(grep -c 'Order Size' out) lines of a counter"
[ "$(cut -d' ' -f1 out | uniq | wc -l)" = 3 ] || fail "--count 3 does not end after three intervals"
has_no out 'System\.Runtime'

# The sum of the intervals is the value of the counter.
code_of "$spoor" counters -p $shop --counters 'Shop.Orders[shop.orders]' --refresh-interval 100ms --count 15 --json
expect_code 0 "intervals of 100 ms"
json_lines out 'all(.[]; .counter != "shop.duration")'
value out 'select(.tags | test("kind=book")) | "\(.added) \(.since_start)"' |
	awk '{ sum += $1; last = $2 } END { if (NR < 12 || sum < last - 0.01 || sum > last + 0.01 || last < 5) { print NR, sum, last; exit 1 } }' ||
	fail "the sum of the intervals is not the value of the counter"

# The runtime's own counters, values that are derived from them, and only the selected counters.
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
[ "$(grep -c System.Runtime out)" = 2 ] || fail "two counters were selected"

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
[ "$(stat -c %a shop.csv)" = 600 ] || fail "the file is not private to its owner"
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
