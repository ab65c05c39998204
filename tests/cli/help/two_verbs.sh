spoor help help help
