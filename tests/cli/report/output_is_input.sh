# An output never replaces the recording that it is made from, under any of its names, nor its FILE.old.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
ln x.nettrace y
for verb in report flame; do
	spoor $verb x.nettrace -o x.nettrace || echo "exit $?"
	spoor $verb x.nettrace -o ./x.nettrace || echo "exit $?"
	spoor $verb y -o x.nettrace || echo "exit $?"
	spoor $verb - -o x.nettrace <x.nettrace || echo "exit $?"
done
rm y
mv x.nettrace a.old
echo there >a
spoor flame a.old -f svg -o a || echo "exit $?"
echo rings >r
spoor recover r -o r || echo "exit $?"
cmp a.old "$data/nettrace/runtime-v4.nettrace"
ls
