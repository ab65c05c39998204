spoor record -p 1 -- true
