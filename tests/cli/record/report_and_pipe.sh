spoor record --report -o - -- true
