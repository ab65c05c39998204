#!/bin/sh
# record --lines and report --lines show lines of C#: from the PDB with the assembly's GUID, also on a machine without it; of methods compiled before and during a recording.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# The program, where its PDB can be taken away.
cp "$(dirname "$app")"/Managed.* . || fail "cp"
app=$scratch/Managed.dll
source=$top/tests/feature/programs/managed/Program.cs
line_of() {
	grep -nF "$1" "$source" | head -n 1 | cut -d: -f1
}
body=$(line_of 'x = x * 31 + i;')
loop=$(line_of 'for (int i = 0; i < 1_000_000; i++)')
call=$(line_of '            x = Burn(x);')
[ -n "$body" ] && [ -n "$loop" ] && [ -n "$call" ] || fail "the program has changed"

has_lines() {
	"$spoor" report --lines --json "$1" >json 2>err || fail "report --lines, $2"
	json json '[.processes[].functions[] | select(.name | test("Hot[.:]+Burn"))] as $f
		| ($f | any(.line == ($a | tonumber) and (.file | endswith("/Program.cs")) and .self_samples > 0))
		and ($f | all(.line == null or .line == ($a | tonumber) or .line == ($b | tonumber)))' "$body" "$loop"
}
no_lines() {
	"$spoor" report --lines --json "$1" >json 2>err || fail "report --lines, $2"
	json json '[.processes[].functions[] | select(.name | test("Hot[.:]+Burn"))] | length > 0 and all(.line == null)'
}

# The recorder starts it: its methods are compiled during the recording, and some several times.
code_of "$spoor" record --lines -F 499 -o x.nettrace -- dotnet "$app" burn 900
expect_code 0 "record --lines"
has_lines x.nettrace "the PDB beside the program"
json json 'any(.processes[].functions[]; (.name | test("Hot[.:]+Run")) and .line == ($a | tonumber))' "$call"
"$spoor" flame --lines -o x.folded x.nettrace 2>err || fail "flame --lines"
has x.folded "Hot[.:]+Run.*Program\.cs:$call;.*Hot[.:]+Burn.*Program\.cs:$body "

# The PDB has the path that the source had when it was built.
"$spoor" annotate --source "$top" Hot.Burn x.nettrace >out 2>err || fail "annotate"
has out "[1-9][0-9]*\\.[0-9] % .* $body  .*x = x \\* 31 \\+ i;"

# The recording has the lines: another machine has neither the PDB nor the program.
mkdir away && mv Managed.pdb Managed.dll away
has_lines x.nettrace "without the PDB"
mv away/* .

# Without --lines there is nothing to find a line with.
code_of "$spoor" record -F 499 -o plain.nettrace -- dotnet "$app" burn 600
expect_code 0 "record"
no_lines plain.nettrace "a recording without --lines"

# A PDB of another build: a wrong line is worse than none. The GUID is in the first bytes of its #Pdb stream.
mv Managed.pdb right.pdb
cp "$top/tests/fuzz/corpus/portable_pdb/lines.pdb" Managed.pdb
code_of "$spoor" record --lines -F 499 -o x.nettrace -- dotnet "$app" burn 900
expect_code 0 "record --lines with the PDB of another program"
no_lines x.nettrace "the PDB of another program"
# The IL offsets are in the recording: the right PDB gives its lines afterwards, and they can be written into it.
cp right.pdb Managed.pdb
has_lines x.nettrace "the PDB comes later"
code_of "$spoor" symbols apply --lines -o y.nettrace x.nettrace
expect_code 0 "symbols apply --lines"
rm Managed.pdb
has_lines y.nettrace "lines written by symbols apply"
cp right.pdb Managed.pdb

# A program that ran before: its methods come with the rundown.
begin burner burn 600000
record_burner() {
	"$spoor" record --lines -q -F 499 --duration 2s -p $burner -o z.nettrace >out 2>err &&
		"$spoor" report --lines --json z.nettrace >json 2>err &&
		[ "$(value json '[.processes[].functions[] | select((.name | test("Hot[.:]+Burn")) and .line != null)] | length')" -ge 1 ]
}
until_true record_burner || fail "no line of a program that ran before"
has_lines z.nettrace "a program that ran before"
kill -9 $burner
