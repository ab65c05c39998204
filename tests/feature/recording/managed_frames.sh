#!/bin/sh
# A small optimized method of .NET has no frame pointer. record --call-graph auto and dwarf find its caller all the same, also through code that was replaced while it ran;
# with fp, which misses it, the caller is marked as unknown.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

[ "$(uname -m)" = x86_64 ] || skip "managed code is unwound by frame pointers on $(uname -m)"

begin shares shares 600000
through='Shares\.Run\(int\);Shares\.Round\(\)'

whole() {
	"$spoor" report --json x.nettrace >json 2>err && value json '.unwinding.ends.start * 100 >= .unwinding.stacks * 98' | grep -q true
}
for mode in auto dwarf; do
	record_until 200 ';Shares\.Work\(int\) ' -F 499 --call-graph $mode -p $shares
	expect_code 0 "record --call-graph $mode: $(cat err)"
	all=$(frames x.folded ';Shares\.Round\(\)')
	a=$(frames x.folded ";$through;Shares\.OuterA\(\)")
	b=$(frames x.folded ";$through;Shares\.OuterB\(\)")
	direct=$(frames x.folded ';Shares\.Round\(\);Shares\.(Mid|Work)')
	[ "$direct" = 0 ] || fail "$mode: $direct of $all stacks have no caller of Mid"
	[ $((100 * (a + b))) -ge $((98 * all)) ] || fail "$mode: $a + $b of $all stacks pass through Run, Round, and OuterA or OuterB"
	[ $((a * 100)) -ge $((63 * all)) ] && [ $((a * 100)) -le $((87 * all)) ] || fail "$mode: OuterA has $a of $all samples, not 75 %"
	has_no x.folded '\[caller unknown: .*;Shares\.Work'
	# At its begin a recording walks by frame pointers until it has read the images, which takes longer on a busy machine.
	for seconds in 3 10 30; do
		! whole || break
		code_of "$spoor" record -q -o x.nettrace --duration ${seconds}s -F 499 --call-graph $mode -p $shares
		expect_code 0 "record --call-graph $mode: $(cat err)"
	done
	whole || fail "$mode: stacks that do not reach the start: $(value json .unwinding)"
done

# The kernel's walk goes from Mid to the caller of its caller: the marker is between them, in this and in other forms of the report.
record_until 200 ';Shares\.Work\(int\) ' -F 499 --call-graph fp -p $shares
expect_code 0 "record --call-graph fp: $(cat err)"
all=$(frames x.folded ';Shares\.Mid\(int\)')
marked=$(frames x.folded ';Shares\.Round\(\);\[caller unknown: no frame pointer\];Shares\.Mid\(int\)')
[ $((100 * marked)) -ge $((98 * all)) ] || fail "fp: $marked of $all stacks have a marker in place of Mid's caller"
has_no x.folded '\[caller unknown: no frame pointer\];Shares\.(Round|Run)'
"$spoor" report --tree x.nettrace >out 2>err || fail "report --tree"
has out '\[caller unknown: no frame pointer\]'
"$spoor" events x.nettrace --stack >out 2>err || fail "events --stack"
has out '^ +\[caller unknown: no frame pointer\]'
