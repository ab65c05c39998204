spoor trace -o nowhere/x.nettrace -- true
