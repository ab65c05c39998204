# The report of a saved snapshot; tests/data/gcdump/README.md says how it was made.
cp "$data/gcdump/small.gcdump" small.gcdump
spoor heap report small.gcdump --top 6
spoor heap roots small.gcdump Order
spoor heap diff small.gcdump small.gcdump
spoor heap report small.gcdump --json --top 2
spoor heap roots small.gcdump Nothing || echo "exit $?"
for size in 10 400 900 2000; do
	head -c $size small.gcdump >torn.gcdump
	spoor heap report torn.gcdump || echo "exit $?"
done
