spoor record -n no-such-program -o x.nettrace
