spoor record -F 1000000 -- true
