# A part of a heap is reported and compared, with a warning and exit code 1.
cp "$data/gcdump/small.gcdump" small.gcdump
cp "$data/gcdump/partial.gcdump" partial.gcdump
spoor heap report partial.gcdump --top 1 || echo "exit $?"
spoor heap diff partial.gcdump small.gcdump || echo "exit $?"
spoor heap diff small.gcdump partial.gcdump || echo "exit $?"
spoor heap diff partial.gcdump small.gcdump --json --top 1 | grep -o '"before":.*' && echo "exit $?"
