#!/bin/sh
# annotate --asm shows the instructions that objdump shows, each with its samples, between source lines: of native code from the file with the recorded build id, and of .NET methods as recorded.
. "$(dirname "$(realpath "$0")")/../prelude"
command -v cc >/dev/null && command -v objdump >/dev/null || skip "no C compiler, or no objdump"

cat >burn.c <<'END'
static inline unsigned long step(unsigned long x, unsigned long i)
{
	return x * 31 + i;
}
__attribute__((noinline)) unsigned long burn(unsigned long x, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		x = step(x, i) ^ (x >> 7);
	return x;
}
int main(int argc, char **argv)
{
	unsigned long x = (unsigned long)argc;
	for (int i = 0; i < 400; i++)
		x = burn(x, 2000000);
	(void)argv;
	return x == 0;
}
END
cc -O2 -g burn.c -o burn 2>err || fail "cc"
"$spoor" record -q -F 999 -o n.nettrace -- ./burn || fail "record"
code_of "$spoor" annotate --asm burn n.nettrace
[ "$code" != 3 ] || skip "$(head -n 1 err)"
expect_code 0 "annotate --asm"
has out '^ *[0-9.]+ %  +[0-9a-f]+  [a-z]'
has out 'burn\.c:3  step \(inlined\)  return x \* 31 \+ i;'
has out 'burn\.c:8  x = step\(x, i\) \^ \(x >> 7\);'

# The same instructions as objdump finds, and every sample at one of them.
"$spoor" annotate --asm --json burn n.nettrace >json 2>err || fail "annotate --asm --json"
value json '.bodies[0].instructions[].offset' >ours
objdump -d --no-show-raw-insn burn | sed -n '/<burn>:/,/^$/ s/^ *\([0-9a-f]*\):.*/\1/p' >addresses
first=$(head -n 1 addresses)
while read -r address; do
	echo $((0x$address - 0x$first))
done <addresses >theirs
[ "$(wc -l <theirs)" -gt 5 ] || fail "objdump shows no burn()"
# Padding after the function is objdump's only.
head -n "$(wc -l <ours)" theirs | cmp -s - ours || fail "other instructions: $(paste ours theirs | head -n 20)"
json json '(.bodies | length) == 1 and .bodies[0].self_samples == .self_samples and .self_samples > 20
	and ([.bodies[0].instructions[].self_samples] | add) == .self_samples'
json json 'any(.bodies[0].instructions[]; .inlined == "step" and .line == 3)'

# Another build of the program is not shown in place of the recorded one.
cc -O1 -g burn.c -o other 2>err || fail "cc"
mv burn right && cp other burn
code_of "$spoor" annotate --asm burn n.nettrace
has out 'has not the build id'
has_no out '^ *[0-9.]+ %  +[0-9a-f]+  [a-z]'
rm burn
code_of "$spoor" annotate --asm burn n.nettrace
has out 'its file is not here'
code_of "$spoor" annotate --asm no_such_function n.nettrace
expect_code 1 "a function that was not sampled"

. "$here/programs/managed/prelude"
begin burner burn 600000
line=$(grep -nF 'x = x * 31 + i;' "$top/tests/feature/programs/managed/Program.cs" | head -n 1 | cut -d: -f1)
lines='.bodies[0].tier != null and ([.bodies[0].instructions[].self_samples] | add) == .bodies[0].self_samples
	and any(.bodies[0].instructions[]; .line == ($a | tonumber) and .self_samples > 0 and (.file | endswith("/Program.cs")))'
# On a busy machine a recording may end before the runtime has sent its methods and their lines.
has_lines() {
	"$spoor" record --code -q -F 499 --duration 2s -p $burner -o z.nettrace >out 2>err &&
		"$spoor" annotate --asm --json Hot.Burn z.nettrace >json 2>err && [ "$(value json "$lines" "$line")" = true ]
}
until_true has_lines || json json "$lines" "$line"

# Without --code the missing option is named.
"$spoor" record -q -F 499 --duration 1s -p $burner -o plain.nettrace || fail "record"
code_of "$spoor" annotate --asm Hot.Burn plain.nettrace
expect_code 0 "annotate --asm without code"
has out 'the recording has no machine code of it: spoor record --code'
