# Stacks in JSON: by address from a pipe and where nothing has a name; none on request.
cp "$data/nettrace/runtime-v4.nettrace" app.nettrace
spoor events app.nettrace --json --provider '*SampleProfiler' --limit 1
spoor events - --json --provider '*SampleProfiler' --limit 1 <app.nettrace
spoor events app.nettrace --json --provider '*SampleProfiler' --limit 1 --no-stacks
