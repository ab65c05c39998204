#!/bin/sh
# .NET code has names: of a program that runs, starts or ends while it is recorded, in every kind of memory, and of code that is freed and replaced.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

burned() {
	folded x.nettrace x.folded
	at_least x.folded "$1" ';Hot\.Burn'
}

# A running program. Without tiering its precompiled code is not replaced.
export DOTNET_TieredCompilation=0
begin burner burn 600000
unset DOTNET_TieredCompilation
record_until 60 ';Hot\.Burn' -F 499 -p $burner
expect_code 0 "a running program"
at_least x.folded 10 'ArraySortHelper|CompareOrdinal'
code_of "$spoor" report -v x.nettrace
has out "^clock of eventpipe in Managed \\([0-9]+\\): the recording's own, to within [0-9.]+ m?u?s\$"
code_of "$spoor" report --json x.nettrace
json out 'any(.processes[].functions[]; .kind == "r2r")'
json out 'any(.processes[]; .runtime == "coreclr" and (.runtime_version | test("^[0-9]")))'
kill -9 $burner

# Started by the recorder, ended before it.
code_of "$spoor" record -q -F 499 -o x.nettrace -- dotnet "$app" burn 700
expect_code 0 "a program that starts and ends"
burned 30

# Code in anonymous memory.
export DOTNET_EnableWriteXorExecute=0
code_of "$spoor" record -q -F 499 -o x.nettrace -- dotnet "$app" burn 700
unset DOTNET_EnableWriteXorExecute
expect_code 0 "a program without W^X"
burned 30

# Code that is freed and replaced. Methods that ran before the session was open have no names.
for kind in dynamic:Made_ collectible:Unloaded_; do
	code_of "$spoor" record -q -F 999 -o x.nettrace -- dotnet "$app" ${kind%:*} 2200
	expect_code 0 "${kind%:*} code"
	"$spoor" flame x.nettrace --from 1200ms --format folded -o - >x.folded 2>err || fail "no flame graph"
	grep -oE "${kind#*:}[0-9]+[^ ]* [0-9]+\$" x.folded | sed -E 's/^([A-Za-z]+_[0-9]+).* ([0-9]+)$/\1 \2/' |
		awk '{ n[$1] += $2; all += $2 } END { for (i in n) print n[i], i; print all, "all" }' | sort -n >each
	named=$(($(wc -l <each) - 1))
	all=$(sed -n 's/ all$//p' each)
	most=$(grep -v all each | tail -n 1)
	[ "$named" -ge 10 ] || fail "of some 50 ${kind%:*} methods $named are seen"
	[ "${most%% *}" -le 60 ] || fail "a method that ran for 20 ms has ${most%% *} of $all samples: ${most#* }"
done

# A program that is stopped answers nothing: the recording's last lines say that its events are missing.
begin stopped burn 600000
kill -STOP $stopped
code_of timeout 250 "$spoor" record -p $stopped --duration 2s -o stopped.nettrace
expect_code 0 "a recording of a stopped program"
has err '^not asked  1 \.NET process stopped or silent: '
kill -9 $stopped
exit 0
