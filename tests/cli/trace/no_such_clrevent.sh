spoor trace -p $$ --clrevents gc+weather -o x.nettrace
