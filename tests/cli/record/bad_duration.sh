spoor record --duration 5parsecs
