spoor trace --list-profiles
