# Names that match no event: a message with similar names. The exit code is 1 if no event is left, also with --quiet.
file=$data/nettrace/runtime-v4.nettrace
spoor events "$file" --event Assembly || echo "exit $?"
spoor events "$file" --event loader/ModuleLaod --event Runtime/Start --json | wc -l
spoor events "$file" --event loader/ModuleLaod --event Runtime/Start >/dev/null 2>&1 && echo "some are left"
spoor events "$file" --provider DotNETRuntime --summary || echo "exit $?"
spoor events "$file" --provider Nope || echo "exit $?"
spoor events "$file" --provider Microsoft-DotNETCore-SampleProfiler --event Runtime/Start || echo "exit $?"
spoor events "$file" --event Assembly --quiet || echo "exit $?"
spoor events "$file" --from 15:20:33 || echo "exit $?"
