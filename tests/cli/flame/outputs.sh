# The path of the flame graph, and the messages if it cannot be written.
cp "$data/nettrace/gc-dynamic.nettrace" x.nettrace
spoor flame x.nettrace
grep -c 'There is no sample to draw' x.svg
spoor flame x.nettrace -o - | head -1
spoor flame x.nettrace -f folded -o - | wc -c
cp x.nettrace y.nettrace.zst && spoor flame y.nettrace.zst && ls y.svg
spoor flame x.nettrace -o /nowhere/x.svg || echo "exit $?"
spoor flame x.nettrace -o /dev/full || echo "exit $?"
spoor flame x.nettrace -o x.folded && wc -c <x.folded
spoor flame x.nettrace -f svg -o x.folded -q && grep -c '</svg>' x.folded
