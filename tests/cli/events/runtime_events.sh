# Events of each provider of the runtime by name and field: with arrays whose length is an earlier field, older and newer versions, and one that is not in the list.
spoor events "$data/nettrace/runtime-events-v6.nettrace"
spoor events "$data/nettrace/runtime-events-v6.nettrace" --json
spoor events "$data/nettrace/runtime-events-v6.nettrace" --summary
