spoor --versoin
