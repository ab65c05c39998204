spoor help -h
