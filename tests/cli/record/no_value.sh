spoor record -o
