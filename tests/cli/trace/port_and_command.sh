spoor trace --dport x.socket -- true
