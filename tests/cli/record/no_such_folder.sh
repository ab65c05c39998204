spoor record -p $$ --duration 1s -o nowhere/x.nettrace
