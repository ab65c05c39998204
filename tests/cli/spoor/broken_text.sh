spoor "$(printf 'a\033[31m\nb\377')"
