spoor record --list-profiles
