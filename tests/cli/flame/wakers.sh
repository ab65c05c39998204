# A picture of wakers needs a recording that has some: without, nothing is written.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
code=0
spoor flame x.nettrace --wakers || code=$?
echo "code $code"
ls
spoor report x.nettrace --off-cpu
spoor report x.nettrace --thread-time
