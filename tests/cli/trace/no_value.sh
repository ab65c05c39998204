spoor trace -o x.nettrace --providers
