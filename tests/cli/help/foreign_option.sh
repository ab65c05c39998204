spoor help --zzzzzz
