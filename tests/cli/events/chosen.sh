# Selects events by provider, name, process and time. An event has to match all of them.
file=$data/nettrace/runtime-v4.nettrace
count() {
	echo "$* $(spoor events "$file" "$@" | wc -l)"
}
count
count --provider '*SampleProfiler'
count --provider '*SampleProfiler' --provider Microsoft-DotNETCore-EventPipe
count --event 'Loader/*Load' --event Runtime/Start
count --event 'loader/*'
count --provider '*SampleProfiler' --event 'Loader/*'
count -p 23789
count -p 1
count -p 1 -p 23789
count --to 30ms
count --from 30ms
count --from 10m
count --limit 7
