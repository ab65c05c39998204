# What is in a file, and of some of it, for programs.
spoor events "$data/nettrace/gc-dynamic.nettrace" --summary
spoor events "$data/nettrace/gc-dynamic.nettrace" --summary --event 'Spoor*' --json
