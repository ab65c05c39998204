# A recording of 49 ms gives no verdict. Processes are chosen by their ids.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor diagnose x.nettrace -p 23789
spoor diagnose x.nettrace -p 23789 --fail-on gc-pressure --json
