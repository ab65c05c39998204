spoor record -p 999999999 --duration 1s -o x.nettrace
