#!/bin/sh
# record --profile db and report --db: the commands of Entity Framework on SQLite, of a driver with spans, and of SqlClient have their exact numbers, failures, targets and
# statements; a trace with stacks names the method.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
program stored
stored=$program

# stored FILE VERB OPTION...: records the program's work.
stored() {
	file=$1 && shift
	rm -f go end ready.stored
	start subject dotnet "$stored" >ready.stored
	until_true grep -q ready ready.stored || fail "the program does not start"
	record_opened 1 "$file" "$@" -p $subject
	touch go
	until_true grep -q stored ready.stored || fail "the program does not end its work"
	# its last event is delivered within 100 ms or so; the session's end delivers all
	kill -INT $recorder
	wait $recorder || fail "the recording failed: $(cat "$file.err")"
	touch end
}

stored x.nettrace record --profile db,http
"$spoor" report --db --json x.nettrace >db.json || fail "report --db"
json db.json '.processes | length == 1 and (.[0].command_count == 31)'
json db.json '.processes[0].commands | map(select(.source == "entity_framework")) | (map(.count) | add) == 14 and (map(.failed) | add) == 2 and all(.[]; .target == "main" and .unfinished_count == 0)'
json db.json '.processes[0].commands[] | select(.statement | startswith("INSERT INTO")) | .count == 5 and .failed == 0'
json db.json '.processes[0].commands[] | select(.statement | startswith("SELECT COUNT")) | .count == 7'
json db.json '.processes[0].commands[] | select(.statement == "DELETE FROM nowhere") | .count == 2 and .failed == 2'
json db.json '.processes[0].commands | map(select(.source == "spans")) | length == 1 and (.[0] | .target == "ledger.example:5432/books (postgresql)" and .statement == "SELECT sum FROM ledger"
	and .count == 11 and .failed == 3 and .total_ns >= 220000000 and .p50_ns >= 19000000)'
json db.json '.processes[0].commands | map(select(.source == "sql_client")) | length == 1 and (.[0] | .target == "stock.example/Stock" and .statement == "SELECT 1" and .count == 6 and .failed == 1
	and .total_ns >= 60000000)'
code_of "$spoor" report --db x.nettrace
expect_code 0 "report --db as text"
has out '^Stored \([0-9]+\), \.NET [0-9.]+: 31 commands to databases in '
has out '^ledger\.example:5432/books \(postgresql\), by spans of the driver$'
code_of "$spoor" report x.nettrace
has out '^--db +31 commands; '
code_of "$spoor" report --db x.nettrace -n nothing-of-this-name
expect_code 1 "a process that is not there"

# With stacks: the program's own method.
stored y.nettrace trace --profile database
"$spoor" report --db --json y.nettrace >db.json || fail "report --db of a trace"
json db.json '.processes[0].commands[] | select(.statement | startswith("INSERT INTO")) | .count == 5 and (.method | startswith("Stored.Shelf.Fill"))'

code_of "$spoor" report --db "$here/../data/nettrace/runtime-v4.nettrace"
expect_code 0 "a file without commands"
has out '^no command to a database is in this selection; spoor record --profile db takes those .*, or spoor trace -p [0-9A-Z]+ --profile database$'
