spoor ps --tree 999999999
