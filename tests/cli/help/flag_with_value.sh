spoor help --completion=yes
