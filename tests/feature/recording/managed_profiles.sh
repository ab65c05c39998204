#!/bin/sh
# record --profile requests the events of the named questions and no others, with the stacks that they need.
own_machine=yes
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# session PROFILES PATTERN: the sessions of a recording with these profiles match.
session() {
	record_opened 1 sessions.nettrace record -p $idle --profile "$1"
	kill -INT $recorder
	wait $recorder || fail "--profile $1: $(cat sessions.nettrace.err)"
	"$spoor" report -v sessions.nettrace >report 2>report.err || fail "report of --profile $1"
	has report "^opened in .*: live $2, 16 MB, with stacks|^opened in .*: live $2, 16 MB, no stacks; rundown"
}

runtime=Microsoft-Windows-DotNETRuntime
stacks="16 MB, no stacks; events $runtime"
begin idle idle 600000
session cpu "$runtime:0x38:[45]"
session gc "$runtime:0x39:[45], $stacks:0x1:4"
session alloc "$runtime:0x39:[45], 16 MB, no stacks; allocations $runtime:0x80000000000:4"
session locks,waits "$runtime:0x4038:[45], $stacks:0x40000004000:5"
session threadpool "$runtime:0x14038:[45], $stacks:0x40000014000:5"
session async "$runtime:0x38:[45], System\.Threading\.Tasks\.TplEventSource:0xc3:4"
session http "$runtime:0x38:[45], Microsoft\.AspNetCore\.Hosting:0xffffffffffffffff:4, .*Microsoft-Diagnostics-DiagnosticSource:0x2:4"
session db "$runtime:0x38:[45], System\.Threading\.Tasks\.TplEventSource:0x80:4, Microsoft\.Data\.SqlClient\.EventSource:0x1:4, .*Microsoft-Diagnostics-DiagnosticSource:0x2:4"
session startup "$runtime:0x210000003c:5, Microsoft\.AspNetCore\.Hosting:0xffffffffffffffff:4"
session all "$runtime:0x210001403d:5, .*, $stacks:0x40000014001:5, 16 MB, with stacks; exceptions $runtime:0x200000000:2, 16 MB, with stacks; allocations $runtime:0x80000000000:4"

# Two profiles, given as one option each: 200 exceptions with their stacks, and the collections; nothing of the usual rest.
begin thrower events 200
record_opened 1 two.nettrace record -p $thrower --profile exceptions --profile GC
touch go
until_true grep -q thrown ready.thrower || fail "the program does not end its work"
kill -INT $recorder
wait $recorder || fail "the recording failed: $(cat two.nettrace.err)"
"$spoor" events --json --provider $runtime two.nettrace >all 2>all.err || fail "events: $(cat all.err)"
json_lines all '[.[] | select(.event == "Exception/Start" and (.stack | any(.function == "Told.Throw()")))] | length == 200'
json_lines all 'any(.[]; .event == "GC/Start") and all(.[] | select(.provider != "Spoor"); .event | test("^(Exception/Start|GC/.*|CommittedUsage)$"))'

code_of "$spoor" record --profile gc,nope -p $$
expect_code 2 "an unknown profile"
has err "^--profile takes cpu, thread-time, gc, .*, all, not 'nope'"
code_of "$spoor" record --profile gc --no-events -p $$
expect_code 2 "a profile without events"
has err '^--profile and --no-events exclude each other'
