# A result that does not get out is a failure; a reader that leaves is none.
spoor report "$data/nettrace/runtime-v4.nettrace" >/dev/full || echo "exit $?"
spoor report "$data/nettrace/runtime-v4.nettrace" | :
