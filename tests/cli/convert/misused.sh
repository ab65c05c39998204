spoor convert || echo "exit $?"
spoor convert x.nettrace --to svg || echo "exit $?"
spoor convert a b --to jitdump || echo "exit $?"
spoor convert --to jitdump -p x y || echo "exit $?"
spoor convert --to jitdump nothing-there || echo "exit $?"
# A pipe that nobody reads from, at the place of a file.
mkfifo perf/perf.data
{ spoor convert --to jitdump "$data/nettrace/runtime-v4.nettrace" 2>&1 || echo "exit $?"; } | sed "s|'.*/here/|'|"
