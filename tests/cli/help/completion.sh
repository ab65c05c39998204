spoor help --completion | grep -E "^(verb|option) help "
