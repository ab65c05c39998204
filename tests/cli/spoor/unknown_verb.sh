spoor hlep
