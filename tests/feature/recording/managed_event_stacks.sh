#!/bin/sh
# record --event-stacks writes each exception, GC trigger and allocation sample of .NET 10, 9 and 8 once, with a named stack, whichever session had it; a trace has them too.
own_machine=yes
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# stacks FILE EVENT: writes the events of this name to ./lines, as JSON. Losses, which are printed with any selection, are left out: an event may be late on a busy machine.
stacks() {
	"$spoor" events --json --event "$2" "$1" >all 2>all.err || fail "events of $1: $(cat all.err)"
	jq -c --arg name "$2" 'select(.event == $name)' all >lines
}

# checked FILE NUMBER: the file has so many exceptions, each with the method that throws in its stack.
checked() {
	stacks "$1" Exception/Start
	json_lines lines 'length == ($a | tonumber) and all(.[]; .fields.ExceptionType == "System.InvalidOperationException")' "$2"
	json_lines lines 'all(.[]; .stack | any(.function == "Told.Throw()" and .module == "Managed.dll"))'
	json_lines lines 'any(.[]; .stack | any(.function == "Told.Run(int)")) and any(.[]; .stack | any(.function == "Told.Run.lambda#0()"))'
	stacks "$1" GC/Triggered
	json_lines lines 'length > 0 and all(.[]; .stack | any(.function == "Told.Run(int)"))'
}

# recorded NAME file verb option...: the program throws 200 times while it is recorded.
recorded() {
	eval "pid=\$$1" && shift
	file=$1 && shift
	record_opened 1 "$file" "$@" -p "$pid"
	touch go
	until_true grep -q thrown ready.thrower || fail "the program does not end its work"
	kill -INT $recorder
	wait $recorder || fail "the recording failed: $(cat "$file.err")"
	has ready.thrower 'thrown 200 '
	touch end
	wait "$pid" || fail "the program did not end well"
	rm -f go end
}

begin thrower events 200
recorded thrower ten.nettrace record --event-stacks
checked ten.nettrace 200
"$spoor" events --stack --event Exception/Start --limit 1 ten.nettrace >text 2>text.err || fail "events --stack"
has text '  Microsoft-Windows-DotNETRuntime/Exception/Start  '
has text '^    Told\.Throw\(\)  Managed\.dll$'
"$spoor" report -v ten.nettrace >report || fail report
has report 'live [^;]*, no stacks; events Microsoft-Windows-DotNETRuntime:0x40000014001:5, 16 MB, with stacks; exceptions Microsoft-Windows-DotNETRuntime:0x200000000:2, 16 MB, with stacks; allocations Microsoft-Windows-DotNETRuntime:0x80000000000:4, 16 MB, with stacks'

"$spoor" flame --event Exception/Start -f folded -o folded ten.nettrace 2>flame.err || fail "flame --event: $(cat flame.err)"
[ "$(frames folded 'Told\.Run\(int\);Told\.Throw\(\)')" = 180 ] || fail "the main thread's throws are not 180: $(cat folded)"
[ "$(frames folded 'Told\.Throw\(\)')" = 200 ] || fail "the throws are not 200"
"$spoor" report --event 'GC/T*' --callers 'Told.Run(int)' ten.nettrace >callers || fail "report --event"
has callers "^Told\.Run\(int\) and its callers: $(stacks ten.nettrace GC/Triggered; grep -c . lines) events, 100\.0 %"

# Without the option no event has a stack.
begin thrower events 200
recorded thrower plain.nettrace record
stacks plain.nettrace Exception/Start
json_lines lines 'length == 200 and all(.[]; has("stack") | not)'

# Allocation samples, of a program that is recorded from its first instruction.
code_of "$spoor" record -q --event-stacks -o started.nettrace -- dotnet "$app" work 1000
expect_code 0 "a command"
stacks started.nettrace AllocationSampling
json_lines lines 'any(.[]; .stack | length > 0)'

# What spoor trace and dotnet-trace record has stacks as well.
begin thrower events 200
recorded thrower trace.nettrace trace --providers Microsoft-Windows-DotNETRuntime:0x8001:4
checked trace.nettrace 200

for version in 9.0 8.0; do
	older $version
	begin_old thrower events 200
	recorded thrower old.nettrace record --event-stacks
	checked old.nettrace 200
done

code_of "$spoor" record --event-stacks --no-events -p $$
expect_code 2 "--event-stacks without events"
has err '^--event-stacks and --no-events exclude each other'
