true &
pid=$!
wait $pid
spoor record -p $pid -o x.nettrace 2>err || code=$?
sed "s/$pid/PID/" err >&2
[ ! -e x.nettrace ]
exit "$code"
