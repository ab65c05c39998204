# source lines of 10,000 distinct addresses of one file, beside addr2line and llvm-symbolizer. [FILE]
need addr2line
build lines
file=${1:-$build/spoor}
[ -e "$file" ] || die "there is no '$file'"
rm -f "$out"/lines*.cost
# Of what the linker has written, the kernel keeps single pages, which are read more slowly than a copied or installed file.
cp "$file" "$out/lines.copy"
file=$out/lines.copy
# Every address is inside .text; a prime step spreads them evenly.
readelf -SW "$file" 2>/dev/null | awk '{ for (i = 1; i < NF; i++) if ($i == ".text") { print $(i + 2), $(i + 4); exit } }' >"$out/lines.text"
read -r begin size <"$out/lines.text"
awk -v begin="$((16#$begin))" -v size="$((16#$size))" 'BEGIN {
	count = size < 10000 ? size : 10000
	for (i = 0; i < count; i++) printf "0x%x\n", begin + int(i * size / count) }' >"$out/lines.addresses"
# Without a shell around the command: its start would be a part of the cost.
run() {
	local name=$1
	shift
	"$out/cputime" "$out/$name.cost" "$@" <"$out/lines.addresses" >"$out/$name.answer" 2>"$out/$name.log" || die "it failed: $*"
}
for _ in 1 2 3 4 5 6 7 8 9; do
	run lines "$out/lines" "$file"
	run lines-addr2line addr2line -afiC -e "$file"
	if command -v llvm-symbolizer >/dev/null; then
		run lines-llvm llvm-symbolizer --obj="$file" --output-style=GNU -a -f -i -C
	fi
done
echo "$(wc -l <"$out/lines.addresses") addresses of $file ($(stat -c %s "$file") bytes)"
show lines
show lines-addr2line
if [ -e "$out/lines-llvm.cost" ]; then
	show lines-llvm
	# The lines themselves: equal in each row, or the figures mean little.
	places() {
		grep -E '^/.*:[0-9]+|^0x' "$1" | sed -E 's/ \(discriminator.*//; s|/\./|/|g; s|[^/]+/\.\./||g'
	}
	echo "rows that differ from llvm-symbolizer's: $(diff <(places "$out/lines.answer") <(places "$out/lines-llvm.answer") | grep -c '^[<>]') of $(places "$out/lines.answer" | wc -l)"
	ratio 'lines, CPU s, beside llvm-symbolizer' "$(column lines 1)" "$(column lines-llvm 1)"
fi
ratio 'lines, CPU s, beside addr2line' "$(column lines 1)" "$(column lines-addr2line 1)"
rm -f "$out/lines.copy"
