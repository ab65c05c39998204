# A collector's dynamic events by their own names: Spoor's with fields, the runtime's with bytes; as lines and as JSON.
spoor events "$data/nettrace/gc-dynamic.nettrace" --event 'SpoorGC*' --limit 3
spoor events "$data/nettrace/gc-dynamic.nettrace" --event CommittedUsage --limit 1
spoor events "$data/nettrace/gc-dynamic.nettrace" --event 'SpoorGC*' --limit 3 --json
spoor events "$data/nettrace/gc-dynamic.nettrace" --event CommittedUsage --limit 1 --json
spoor events "$data/nettrace/gc-dynamic.nettrace" --event GC/DynamicEvent || echo "exit $?"
