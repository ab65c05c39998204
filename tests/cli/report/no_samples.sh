# A file without CPU samples: a message and a remedy.
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
cp "$data/nettrace/gc-dynamic.nettrace" x.nettrace
spoor report x.nettrace --from 1ms
spoor report x.nettrace --from 15:20:33 >/dev/null || echo "exit $?"
spoor report x.nettrace --json | jq -c '{samples, lost, lost_exact, duration_ns}'
