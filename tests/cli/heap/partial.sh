# A part of a heap is reported and compared, with a warning and exit code 1.
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
cp "$data/gcdump/small.gcdump" small.gcdump
cp "$data/gcdump/partial.gcdump" partial.gcdump
spoor heap report partial.gcdump --top 1 || echo "exit $?"
spoor heap diff partial.gcdump small.gcdump || echo "exit $?"
spoor heap diff small.gcdump partial.gcdump || echo "exit $?"
spoor heap diff partial.gcdump small.gcdump --json --top 1 >diff.json || echo "exit $?"
jq -c '{before, diff}' diff.json
