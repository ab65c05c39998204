spoor trace -p 1 -- true
