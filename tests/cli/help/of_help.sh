spoor help help
