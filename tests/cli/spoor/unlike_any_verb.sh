spoor xyzzy
