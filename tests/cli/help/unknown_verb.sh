spoor help hepl
