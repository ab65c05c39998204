spoor trace -p 999999999 -o x.nettrace
