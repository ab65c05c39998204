#!/bin/sh
# spoor record names .NET methods from the memory of a process whose runtime does not send them: the names are those that the runtime sends, also of code that is freed
# and replaced and of programs that live for a tenth of a second, and no session is opened with --names-from-memory.
own_machine=yes
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# symbols FILE: prints address and name of each method in a recording, without the tier, which the memory does not always have. Types of parameters get one spelling: a name from an
# image file has "native int" and "uint8" where one from the runtime or its memory has "int" and "value class" or "unsigned int8".
symbols() {
	"$spoor" events "$1" --event ProcessSymbol --json >symbols.json 2>events.err
	value symbols.json '.fields | select(.Name | contains("::")) | "\(.Start) \(.Name)"' |
		sed -E 's/\[[A-Za-z0-9]*\]$//; s/native (u?int)/\1/g; s/value class //g; s/unsigned int/uint/g' | sort -u
}

# tiers FILE: prints address and tier of each compiled method in a recording.
tiers() {
	"$spoor" events "$1" --event ProcessSymbol --json >tiers.json 2>events.err
	value tiers.json '.fields | select(.Name | test("::.*\\[[A-Za-z0-9]*\\]$")) | "\(.Start) \(.Name | capture("\\[(?<tier>[A-Za-z0-9]*)\\]$").tier)"' | sort -u
}

# Diagnostics switched off: the summary and the report give the source of the names, and the reason.
export DOTNET_EnableDiagnostics=0
begin off burn 600000
unset DOTNET_EnableDiagnostics
record_until 60 ';Hot\.Burn' -F 499 -p $off
expect_code 0 "a program with its diagnostics off"
code_of "$spoor" record -F 499 -p $off --duration 2s -o off.nettrace
has err '^memory     methods of 1 \.NET process were named from its memory, as no runtime sent them'
"$spoor" report -v off.nettrace >report 2>err || fail "report"
has report 'no names from its runtime: it has no diagnostics socket[^;]*; those in its samples are read from its memory'
kill -9 $off

# The same names at the same addresses as the runtime sends them.
for mode in burn threads; do
	begin both $mode 600000
	start socket "$spoor" record -q --no-events -F 1999 -p $both --duration 4s -o socket.nettrace
	code_of "$spoor" record -q --names-from-memory -F 1999 -p $both --duration 4s -o memory.nettrace
	expect_code 0 "names from memory, while another recorder asks the runtime"
	wait $socket
	symbols socket.nettrace >socket.names
	symbols memory.nettrace >memory.names
	join socket.names memory.names >joined
	# A stub's signature has types that only the runtime that compiles it knows.
	grep -v IL_STUB joined | awk '{ half = (length($0) - length($1)) / 2; if (substr($0, length($1) + 1, half) != substr($0, length($1) + 1 + half)) print }' >different
	[ ! -s different ] || fail "$mode: other names than the runtime's: $(head -n 5 different)"
	[ "$(wc -l <joined)" -ge 5 ] || fail "$mode: only $(wc -l <joined) addresses are in both: $(cat socket.names memory.names | head -n 20)"
	# No other tier than the runtime's, and that of the method that runs most.
	tiers socket.nettrace >socket.tiers
	tiers memory.nettrace >memory.tiers
	join socket.tiers memory.tiers | awk '$3 != "Unknown"' >tiers
	awk '$2 != $3' tiers >different
	[ ! -s different ] || fail "$mode: other tiers than the runtime's: $(cat different socket.names | head -n 20)"
	grep -q ' OptimizedTier1' tiers || fail "$mode: no tier is known: $(cat socket.tiers memory.tiers memory.names | head -n 30)"
	kill -9 $both
done

# No session in the process: an EventPipe session has a thread.
begin alone burn 600000
start recorder "$spoor" record -q --names-from-memory -F 499 -p $alone -o alone.nettrace
named_so_far() {
	"$spoor" flame alone.nettrace --format folded -o - 2>flame.err | grep -q ';Hot\.Burn'
}
until_true named_so_far || fail "no names while it is recorded: $(cat flame.err)"
no_session $alone || fail "--names-from-memory has opened a session"
kill -INT $recorder
wait $recorder || fail "the recorder failed"
code_of "$spoor" report --json alone.nettrace
json out '.processes[0].runtime_version == null'
kill -9 $alone

# Code that is freed and replaced: each method runs for 20 ms, so a name with more samples is also that of others. They run one after the other, so a name that comes back is wrong.
for kind in dynamic:Made_ collectible:Unloaded_; do
	code_of "$spoor" record -q --names-from-memory -F 999 -o x.nettrace -- dotnet "$app" ${kind%:*} 2200
	expect_code 0 "${kind%:*} code"
	"$spoor" flame x.nettrace --format folded -o - >x.folded 2>err || fail "no flame graph"
	grep -oE "${kind#*:}[0-9]+[^ ]* [0-9]+\$" x.folded | sed -E 's/^([A-Za-z]+_[0-9]+).* ([0-9]+)$/\1 \2/' |
		awk '{ n[$1] += $2; all += $2 } END { for (i in n) print n[i], i; print all, "all" }' | sort -n >each
	named=$(($(wc -l <each) - 1))
	all=$(sed -n 's/ all$//p' each)
	most=$(grep -v all each | tail -n 1)
	[ "$named" -ge 10 ] || fail "of some 50 ${kind%:*} methods $named are seen"
	"$spoor" events x.nettrace --event cpu --json >samples.json 2>err || fail "events of ${kind%:*}: $(cat err)"
	value samples.json '[.stack[]?.function | strings | capture($a + "(?<number>[0-9]+)").number] | last // empty' "${kind#*:}" >order
	awk -v all="$all" '$1 < last { print "a sample of " $1 " after one of " last; exit 1 } { last = $1 } END { if (NR < all) print NR " samples of " all }' order >wrong || fail "${kind%:*}: $(cat wrong)"
	[ ! -s wrong ] || fail "${kind%:*}: $(cat wrong)"
	[ "${most%% *}" -le 60 ] || fail "a method that ran for 20 ms has ${most%% *} of $all samples: ${most#* }"
done

# The same without a socket, where nothing forces the names from memory: no answer is waited for, so that dynamic code has names from its begin.
code_of env DOTNET_EnableDiagnostics=0 "$spoor" record -F 999 -o x.nettrace -- dotnet "$app" dynamic 2200
expect_code 0 "dynamic code of a program with its diagnostics off"
has_no err 'when the recorder.s memory was used up'
"$spoor" flame x.nettrace --format folded -o - >x.folded 2>err || fail "no flame graph"
named=$(grep -oE 'Made_[0-9]+' x.folded | sort -u | wc -l)
[ "$named" -ge 10 ] || fail "of some 50 dynamic methods $named have names, with the diagnostics off"

# Programs that live for a tenth of a second, without a socket. The machine may be so busy that one is not read in time; of ten some are.
export DOTNET_EnableDiagnostics=0
start recorder "$spoor" record -a -F 999 -o short.nettrace 2>short.err
until_true test -s short.nettrace || fail "no recording of the machine: $(cat short.err)"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	dotnet "$app" burn 60 >burn.out
done
unset DOTNET_EnableDiagnostics
kill -INT $recorder
wait $recorder || fail "the recorder failed: $(cat short.err)"
has short.err '^memory     methods of ([0-9]+) \.NET process'
folded short.nettrace short.folded
at_least short.folded 3 ';Hot\.Burn'

# A user of another process has no right to its memory; nothing is named then, and the recording does not fail. Options that exclude each other are refused.
code_of "$spoor" record --names-from-memory --no-dotnet -- true
expect_code 2 "--names-from-memory and --no-dotnet"
has err 'exclude each other'
code_of "$spoor" record --names-from-memory --event-stacks -- true
expect_code 2 "--names-from-memory and events"
exit 0
