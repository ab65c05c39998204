# Kinds that do not exist, a file that is no recording, and a process that is not in it.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor diagnose x.nettrace --fail-on cpu-hotpot || echo "exit $?"
echo 'no recording' >y.nettrace
spoor diagnose y.nettrace || echo "exit $?"
spoor diagnose x.nettrace -p 99 || echo "exit $?"
