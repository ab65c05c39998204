spoor record --max-size 12x
