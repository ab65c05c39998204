# Without a file: none here is a failure that says what to do, else the newest is taken and named.
spoor report || echo "exit $?"
cp "$data/nettrace/runtime-v4.nettrace" 'a b.nettrace'
spoor report | tail -2
