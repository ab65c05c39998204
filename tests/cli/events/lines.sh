# A runtime's stream: the known events by name and field, from the newest file here, by -i, and from a pipe; times are in order.
cp "$data/nettrace/runtime-v4.nettrace" app.nettrace
spoor events --limit 3
spoor events -i app.nettrace | wc -l
spoor events - <app.nettrace | cut -c1-15 | sort -c && echo in order
spoor events app.nettrace --provider '*SampleProfiler' | head -n 2
spoor events app.nettrace --json --limit 2
