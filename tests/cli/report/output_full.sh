# A full disk is an error; a reader that closes the pipe is not.
spoor report "$data/nettrace/runtime-v4.nettrace" >/dev/full || echo "exit $?"
spoor report "$data/nettrace/runtime-v4.nettrace" | :
