spoor help >/dev/full
