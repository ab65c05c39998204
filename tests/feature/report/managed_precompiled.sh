#!/bin/sh
# report --lines and annotate --asm show lines and code of precompiled (ReadyToRun) methods, from the assembly and the PDB with the recorded GUID, and from the recording alone after record --lines.
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
app=$("$top/scripts/test-programs" managed-r2r 2>err) || {
	[ $? = 77 ] && skip "$app"
	fail "the program could not be built"
}
cp "$(dirname "$app")"/Managed.* . || fail "cp"
app=$scratch/Managed.dll
source=$top/tests/feature/programs/managed/Program.cs
body=$(grep -nF 'x = x * 31 + i;' "$source" | head -n 1 | cut -d: -f1)
loop=$(grep -nF 'for (int i = 0; i < 1_000_000; i++)' "$source" | head -n 1 | cut -d: -f1)

# Without tiered compilation the precompiled code is not replaced. Offsets and lines that Managed.pdb has are the truth: the loop has two lines.
export DOTNET_TieredCompilation=0
has_lines() {
	"$spoor" report --lines --json "$1" >json 2>err || fail "report --lines, $2"
	json json '[.processes[].functions[] | select(.name | test("Hot[.:]+Burn"))] as $f
		| ($f | any(.line == ($a | tonumber) and .self_samples > 0))
		and ($f | all(.line == null or .line == ($a | tonumber) or .line == ($b | tonumber) or .line == ($b | tonumber) + 2))' "$body" "$loop"
}
code_of "$spoor" record --lines -F 499 -o x.nettrace -- dotnet "$app" burn 900
expect_code 0 "record --lines"
"$spoor" report --json x.nettrace >json 2>err || fail "report"
json json 'any(.processes[].functions[]; (.name | test("Hot[.:]+Burn")) and (.tier // "" | test("R2R|ReadyToRun")))' || fail "the program was not precompiled"
has_lines x.nettrace "the assembly and the PDB are here"

code_of "$spoor" annotate --asm --json Hot.Burn x.nettrace
if [ "$code" = 0 ]; then
	json out '.bodies[0].tier == "ReadyToRun" and .bodies[0].why_no_code == null
		and ([.bodies[0].instructions[].self_samples] | add) == .bodies[0].self_samples
		and any(.bodies[0].instructions[]; .line == ($a | tonumber) and .self_samples > 0)' "$body"
else
	expect_code 3 "annotate --asm"
fi

# The recording has the lines of sampled code. Neither the PDB nor the assembly is needed then.
mkdir away && mv Managed.pdb Managed.dll away
has_lines x.nettrace "on another machine"
code_of "$spoor" annotate --asm --json Hot.Burn x.nettrace
[ "$code" != 0 ] || json out '.bodies[0].why_no_code != null'
mv away/* .

# Another assembly at the path has another GUID: its offsets are not used, nor its code.
mv Managed.pdb right.pdb
code_of "$spoor" record --lines -F 499 -o y.nettrace -- dotnet "$app" burn 900
expect_code 0 "record --lines without the PDB"
mv right.pdb Managed.pdb
"$spoor" report --lines --json y.nettrace >json 2>err || fail "report --lines"
has_lines y.nettrace "the PDB comes later"
cp "$top/tests/data/pe/tiny_r2r.dll" Managed.dll
"$spoor" report --lines --json y.nettrace >json 2>err || fail "report --lines"
json json '[.processes[].functions[] | select(.name | test("Hot[.:]+Burn"))] | length > 0 and all(.line == null)'
code_of "$spoor" annotate --asm --json Hot.Burn y.nettrace
[ "$code" != 0 ] || json out '.bodies[0].why_no_code != null'
