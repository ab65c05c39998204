# A program that is no .NET program: a message, and no file.
sleep 20 &
pid=$!
trap 'kill $pid' EXIT
until [ "$(cat /proc/$pid/comm)" = sleep ]; do :; done
code=0
spoor trace -p $pid -o x.nettrace 2>err || code=$?
sed "s/$pid/PID/g" err >&2
[ ! -e x.nettrace ]
exit $code
