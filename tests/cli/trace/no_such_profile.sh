spoor trace -p $$ --profile cpu-sampling -o x.nettrace
