# The analyses of runtime events of a file without such events, and with options that do not go with them. Figures are held against TraceEvent in oracle/events.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
code=0
for answer in gc exceptions alloc locks waits threadpool jit requests; do
	spoor report --$answer x.nettrace
	spoor report --$answer --json x.nettrace
	spoor report --$answer -p 99 x.nettrace || code=$?
	echo "code $code"
	spoor report --$answer --tree x.nettrace || code=$?
	echo "code $code"
done
spoor report --gc --exceptions x.nettrace || code=$?
echo "code $code"
