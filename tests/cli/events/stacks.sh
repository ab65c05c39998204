# Stacks in JSON: as addresses from a pipe and if no name is known; none with --no-stacks.
cp "$data/nettrace/runtime-v4.nettrace" app.nettrace
spoor events app.nettrace --json --provider '*SampleProfiler' --limit 1
spoor events - --json --provider '*SampleProfiler' --limit 1 <app.nettrace
spoor events app.nettrace --json --provider '*SampleProfiler' --limit 1 --no-stacks
