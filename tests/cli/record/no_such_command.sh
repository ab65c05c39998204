spoor record -q -o x.nettrace -- ./no-such-command
