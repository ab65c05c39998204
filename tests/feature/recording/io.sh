#!/bin/sh
# record --io: counts, errors, bytes and small calls are exactly those of a program, by file, socket and pipe: of a command and of a process that ran before; with strace's; other processes are left out.
. "$(dirname "$(realpath "$0")")/../prelude"
is_root || skip "not root: programs in the kernel need rights"
io_target=$(dirname "$spoor")/tests/io_target

# expect_calls EXPECTED PID: x.json has the calls that the program printed, and no others of these names.
expect_calls() {
	json x.json '[.processes[] | select(.pid == ($a | tonumber))] | length == 1' "$2"
	value x.json '.processes[] | select(.pid == ($a | tonumber)).calls[] | [.thing, .name, .call, .count, .errors, .again, .bytes, .small] | @tsv' "$2" | sort >counted
	grep -v '^slow' "$1" | sort >expected
	[ "$(wc -l <expected)" -gt 600 ] || fail "the program printed too little"
	comm -23 expected counted >missing
	if [ -s missing ]; then
		cut -f 1-3 missing | grep -F -f - counted >near
		fail "not counted: $(head -n 5 missing); counted: $(head -n 5 near)"
	fi
	while read -r _ name least_ns most_ns; do
		json x.json '[.processes[].calls[] | select(.name == $a and .call == "read")] | length == 1 and .[0].longest_ns >= ($b | tonumber) and .[0].longest_ns <= ($c | tonumber)
			and .[0].total_ns == .[0].longest_ns' "$name" "$least_ns" "$most_ns"
	done <<-END
		$(grep '^slow' "$1")
	END
	# calls on a number that is no descriptor
	json x.json '[.processes[] | select(.pid == ($a | tonumber)).calls[] | select(.descriptor == 999)] | length == 1 and .[0].count == 4 and .[0].errors == 4 and .[0].last_error == 9
		and .[0].thing == "unknown"' "$2"
	# accepted sockets: ten times 64 bytes and an end each, from three of them
	json x.json '[.processes[] | select(.pid == ($a | tonumber)).calls[] | select(.call == "recvfrom" and .thing == "socket")] | (map(.count) | add) == 33 and (map(.bytes) | add) == 1920' "$2"
	json x.json '[.processes[] | select(.pid == ($a | tonumber)).calls[] | select(.kind == "accept")] | length == 1 and .[0].count == 3' "$2"
}

report() {
	"$spoor" report x.nettrace --io --json >x.json 2>err || fail "no report of input and output"
	json x.json '[.processes[] | .call_count == ([.calls[].count] | add) and .error_count == ([.calls[].errors] | add) and .total_ns == ([.calls[].total_ns] | add)
		and .read_bytes == ([.calls[] | select(.kind == "read").bytes] | add // 0) and .written_bytes == ([.calls[] | select(.kind == "write").bytes] | add // 0)] | all'
	# Samples may be lost on a busy machine, calls may not.
	"$spoor" report x.nettrace --json >whole.json 2>err || fail "no report"
	json whole.json 'all(.losses[]; .unit == "samples" or .unit == "events")'
}

# A command, from its exec on: what the recorder's child does before is not its own.
mkdir a
code_of "$spoor" record --io -o x.nettrace -- "$io_target" "$PWD/a"
expect_code 0 "recording a command"
cp out said
report
expect_calls said "$(value x.json '[.processes[] | select(.name == "io_target").pid] | min')"
json x.json '[.processes[].calls[] | select(.name | test("go|nettrace"))] == []'

# A process that ran before, beside another one that is not recorded.
mkdir b c
mkfifo go other
rm -f x.nettrace
start one "$io_target" "$PWD/b" go >said
start two "$io_target" "$PWD/c" other >/dev/null
until_true test -e b/early && until_true test -e c/early || fail "the programs do not run"
start recorder "$spoor" record --io -q -o x.nettrace -p "$one"
until_true test -e x.nettrace || fail "no recording"
echo >go
echo >other
until_true grep -q slow said || fail "the program does not work"
sleep 1.5 # so that the recorder has looked at what is open
echo >go
echo >other
wait "$recorder" || fail "the recording failed"
report
expect_calls said "$one"
json x.json '[.processes[].pid] | unique | map(tostring) - [$a] | length <= 1' "$one" # and its child
json x.json '[.processes[].calls[] | select(.name | startswith($a))] == []' "$PWD/c"

# The text, and times.
"$spoor" report x.nettrace --io >out 2>err || fail "no text"
has out 'io_target \([0-9]+\): [0-9,]+ calls for input and output in '
has out '^  read .*, wrote .*; [0-9,]+ writes of at most 16 bytes$'
has out '^pipe pipe:\[[0-9]+\]$'
code_of "$spoor" report x.nettrace --io --from 1h
expect_code 1 "a time without calls"
has out 'no call for input or output is in this selection'

# strace counts the same.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	strace -f -c -o counts dd if=/dev/zero of=d bs=8 count=3000 conv=fsync 2>/dev/null
	code_of "$spoor" record --io -q -o x.nettrace -- dd if=/dev/zero of=d bs=8 count=3000 conv=fsync
	expect_code 0 "recording dd"
	report
	for call in read write openat fsync; do
		set -- $(awk -v call=$call '$NF == call { print $4, (NF > 5 ? $5 : 0) }' counts)
		json x.json '[.processes[].calls[] | select(.call == $a)] | (map(.count) | add) == ($b | tonumber) and (map(.errors) | add) == ($c | tonumber)' $call "$1" "$2"
	done
fi

# A hundred programs that end right after their start, each with its own calls.
code_of "$spoor" record --io -q -o x.nettrace -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do for k in 1 2 3 4 5 6 7 8 9 10; do /bin/echo $i$k >>lines; done; done'
expect_code 0 "recording short programs"
report
json x.json '[.processes[] | select(.name == "echo").calls[] | select(.call == "write")] | length == 100 and (map(.count) | add) == 100 and (map(.bytes) | add) == ($a | tonumber)' "$(wc -c <lines)"

# Only whole processes are counted, and not without rights; all else is recorded.
code_of "$spoor" record --io -o x.nettrace -C 0 -- true
expect_code 0 "recording one CPU"
has err 'input and output are not recorded: they are counted for whole processes'
code_of "$spoor" report x.nettrace --io
expect_code 0 "a report without counts"
has out 'no call for input or output is in this selection'
if command -v setpriv >/dev/null; then
	chmod 777 .
	cp "$spoor" .
	rm -f x.nettrace
	code_of setpriv --reuid=65534 --regid=65534 --clear-groups ./spoor record --io -o x.nettrace -- true
	expect_code 0 "recording without rights"
	has err 'input and output are not recorded: this user may not run programs in the kernel'
	has err 'record with sudo'
fi
