# A recording of a process that does nothing, chosen by its id; the same as JSON.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor diagnose x.nettrace -p 23789
spoor diagnose x.nettrace -p 23789 --fail-on gc-pressure --json
