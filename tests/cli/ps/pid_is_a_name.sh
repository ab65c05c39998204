spoor ps -p shop
