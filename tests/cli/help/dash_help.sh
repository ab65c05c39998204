spoor help --help
