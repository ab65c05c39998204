# Events of one name in place of samples: tables, tree, callers and JSON.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor report x.nettrace --event Thread/Sample --top 3 | sed -n '/process/,/^$/p'
spoor report x.nettrace --event Thread/Sample --tree | grep -c ' events$'
spoor report x.nettrace --event Thread/Sample --callers '[unknown]' | grep ' and its callers'
spoor report x.nettrace --event Thread/Sample --json | jq -c '[.weighing, .samples, .selected_cpu_ns == .samples]'
spoor report x.nettrace --event Thread/Sample --gc || echo "exit $?"
