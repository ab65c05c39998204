# Names that no event has: a sentence with those that are like them. The exit code stays 0, for the file could be read.
file=$data/nettrace/runtime-v4.nettrace
spoor events "$file" --event Assembly
spoor events "$file" --event loader/ModuleLaod --event Runtime/Start --json | wc -l
spoor events "$file" --provider DotNETRuntime --summary
spoor events "$file" --provider Nope
spoor events "$file" --provider Microsoft-DotNETCore-SampleProfiler --event Runtime/Start
spoor events "$file" --event Assembly --quiet
