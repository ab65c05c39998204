spoor trace -p $$ --providers A:1:9 -o x.nettrace
