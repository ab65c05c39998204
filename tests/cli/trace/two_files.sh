spoor trace -p 1 -o a -o b
