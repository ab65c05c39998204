spoor ps -p 999999999
