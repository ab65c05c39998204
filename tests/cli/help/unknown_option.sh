spoor help --completino
