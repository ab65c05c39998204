#!/bin/sh
# record --code and convert --to jitdump make files from which the real perf shows C# lines beside the instructions of a method; with another build's PDB it shows none.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

cp "$(dirname "$app")"/Managed.* . || fail "cp"
app=$scratch/Managed.dll
source=$top/tests/feature/programs/managed/Program.cs
body=$(grep -nF 'x = x * 31 + i;' "$source" | head -n 1 | cut -d: -f1)
[ -n "$body" ] || fail "the program has changed"

# A program that ran before: it is still there when its code is read.
begin burner burn 600000
has_code() {
	"$spoor" record --code -q -F 499 --duration 2s -p $burner -o z.nettrace >out 2>err &&
		"$spoor" convert z.nettrace --to jitdump -o files >out 2>err &&
		grep -q 'perf.data: .* samples; 1 jitdump with the code of [1-9]' err &&
		strings -n 8 "files/jit-$burner.dump" | grep -q 'Hot\.Burn(.*\[' &&
		strings -n 8 "files/jit-$burner.dump" | grep -q 'Program\.cs'
}
until_true has_code || fail "no code of Hot.Burn"
kill -9 $burner

# Without --code there is no code, and the samples are still converted.
code_of "$spoor" record -q --duration 1s -F 199 -o plain.nettrace -- "$target" spin 300
code_of "$spoor" convert plain.nettrace --to jitdump -o plain
expect_code 0 "convert without code"
has err 'spoor record --code records it'
[ -s plain/perf.data ] || fail "no perf.data"
[ -z "$(ls plain/*.dump 2>/dev/null)" ] || fail "a jitdump without code"

# A PDB of another build gives no line.
mv Managed.pdb right.pdb
cp "$top/tests/fuzz/corpus/portable_pdb/lines.pdb" Managed.pdb
code_of "$spoor" record --code -F 499 -o x.nettrace -- dotnet "$app" burn 1500
expect_code 0 "record --code"
code_of "$spoor" convert x.nettrace --to jitdump -o wrong
expect_code 0 "convert with the PDB of another program"
has err ', 0 with source lines'
mv right.pdb Managed.pdb

# Files are not written over the recording, nor over other things.
: >plainfile
code_of "$spoor" convert z.nettrace --to jitdump -o plainfile
expect_code 1 "a file in place of the folder"
head -c 30000 z.nettrace >cut.nettrace
code_of "$spoor" convert cut.nettrace --to jitdump -o cut
expect_code 1 "a truncated recording"

command -v perf >/dev/null && perf version >/dev/null 2>&1 || skip "perf is not installed: its part was not checked"
command -v objdump >/dev/null || skip "objdump is not installed: perf annotate needs it"
perf inject --jit -i files/perf.data -o files/jit.data >out 2>err || skip "this perf cannot inject: $(head -n 1 err)"
perf report -i files/jit.data --no-children -g none --stdio --fields sample,sym >report 2>err || fail "perf report"
has report 'Hot\.Burn\(int\)'
# The hottest body of Hot.Burn has the line of its loop, and the source beside it.
symbol=$(sed -n 's/^ *[0-9]* *\[\.\] \(Hot\.Burn(int).*[^ ]\) *$/\1/p' report | head -n 1)
perf annotate -i files/jit.data --stdio -l -s "$symbol" >annotated 2>err || fail "perf annotate '$symbol'"
has annotated "[0-9]+\\.[0-9]+ +Program\\.cs:$body"
[ ! -e "$source" ] || has annotated 'x = x \* 31 \+ i;'
