spoor help -x
