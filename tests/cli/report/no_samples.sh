# A file without CPU samples says so, and what to do.
cp "$data/nettrace/gc-dynamic.nettrace" x.nettrace
spoor report x.nettrace --from 1ms
spoor report x.nettrace --from 15:20:33 >/dev/null || echo "exit $?"
spoor report x.nettrace --json | grep -o '^{"samples":0,"lost":0,"lost_exact":true,"duration_ns":[0-9]*'
