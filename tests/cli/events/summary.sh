# The numbers of all events in a file, and of selected events as JSON.
spoor events "$data/nettrace/gc-dynamic.nettrace" --summary
spoor events "$data/nettrace/gc-dynamic.nettrace" --summary --event 'Spoor*' --json
