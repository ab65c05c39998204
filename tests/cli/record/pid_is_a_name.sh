spoor record -p shop -o x.nettrace
