# report --gc of a file without collections, and with options that do not go with it. Figures are held against TraceEvent in oracle/events.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor report --gc x.nettrace
spoor report --gc --json x.nettrace
code=0
spoor report --gc -p 99 x.nettrace || code=$?
echo "code $code"
spoor report --gc --tree x.nettrace || code=$?
echo "code $code"
