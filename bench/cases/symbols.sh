# names from a large symbol file for a recording: --seconds S (60), --functions N (285000)
seconds=60 functions=285000
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2 ;;
	--functions) functions=$2 ;;
	*) die "symbols takes --seconds and --functions" ;;
	esac
	shift 2
done
[ "$(uname -m)" = x86_64 ] || die "its program is in assembly for x86-64"
need objcopy
build
folder=$out/symbols
export SPOOR_SYMBOL_CACHE=$folder/cache
rm -rf "$folder" "$out"/symbols-*.cost
mkdir -p "$folder"

# Many short functions with long names, called one after the other, as those of a runtime are in a recording of everything that it does.
awk -v n="$functions" 'BEGIN {
	print ".text"
	for (i = 0; i < n; i++)
		printf ".type a_function_of_some_namespace_with_a_name_as_long_as_those_of_templates_have_%d,@function\na_function_of_some_namespace_with_a_name_as_long_as_those_of_templates_have_%d:\n.cfi_startproc\npush %%rbp\n.cfi_def_cfa_offset 16\nmov %%rsp,%%rbp\nmov $3000,%%ecx\n1: dec %%ecx\njnz 1b\npop %%rbp\nret\n.cfi_endproc\n.size a_function_of_some_namespace_with_a_name_as_long_as_those_of_templates_have_%d,.-a_function_of_some_namespace_with_a_name_as_long_as_those_of_templates_have_%d\n", i, i, i, i
	print ".globl table\n.data\n.align 8\ntable:"
	for (i = 0; i < n; i++)
		printf ".quad a_function_of_some_namespace_with_a_name_as_long_as_those_of_templates_have_%d\n", i
	print ".section .note.GNU-stack,\"\",@progbits"
}' >"$folder/many.s"
cat >"$folder/main.c" <<C
extern void (*table[])(void);
int main(void)
{
	for (unsigned i = 0;; i = (i + 7919) % $functions)
		table[i]();
}
C
cc -O1 -fno-omit-frame-pointer -Wl,--build-id "$folder/main.c" "$folder/many.s" -o "$folder/whole" || die "its program cannot be built"
objcopy --only-keep-debug "$folder/whole" "$folder/whole.debug"
strip -o "$folder/bare" "$folder/whole"
start "$folder/bare"
"$spoor" record -q -F 999 -p "$last" --duration "${seconds}s" -o "$folder/x.nettrace"
stop "$last"
"$spoor" symbols list "$folder/x.nettrace"
cost symbols-import "$spoor" symbols import -q "$folder/whole.debug"
for _ in 1 2 3 4 5; do
	cost symbols-apply "$spoor" symbols apply -o "$folder/named.nettrace" "$folder/x.nettrace"
	cost symbols-report "$spoor" report --json -o "$folder/x.json" "$folder/named.nettrace"
	cost symbols-cached "$spoor" report --json -o "$folder/x.json" "$folder/x.nettrace"
done
echo "symbol file: $(stat -c %s "$folder/whole.debug") bytes; recording: $(stat -c %s "$folder/x.nettrace"), named $(stat -c %s "$folder/named.nettrace") bytes"
for name in import apply report cached; do
	show "symbols-$name"
done
ratio symbols-apply-seconds "$(column symbols-apply 1)" 0.5
ratio symbols-apply-mib "$(awk -v k="$(column symbols-apply 3)" 'BEGIN { print k / 1024 }')" 64
rm -rf "$folder"
