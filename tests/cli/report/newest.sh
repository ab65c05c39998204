# Without a file argument the newest recording is used and named; without a recording there is an error with a remedy.
spoor report || echo "exit $?"
cp "$data/nettrace/runtime-v4.nettrace" 'a b.nettrace'
spoor report | tail -2
