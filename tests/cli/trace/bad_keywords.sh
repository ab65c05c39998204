spoor trace -p $$ --providers A:xyz -o x.nettrace
