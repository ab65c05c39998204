spoor record -p 1,,2 -o x.nettrace
