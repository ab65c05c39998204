code=0
spoor trace -q -o x.nettrace -- ./no-such-command || code=$?
[ ! -e x.nettrace ]
exit $code
