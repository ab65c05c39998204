spoor trace -p 1 --buffersize 0
