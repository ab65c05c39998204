spoor record -p 0 -o x.nettrace
