spoor ps -n no-such-program
