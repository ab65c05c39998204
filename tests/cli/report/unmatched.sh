# A filter that matches nothing says which of its names no process or module has.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor report x.nettrace -p 4 >/dev/null
spoor report x.nettrace -n Shop -n 'pid*' >/dev/null
spoor report x.nettrace -m Shop.dll >/dev/null
spoor flame x.nettrace -n Nope -m Shop.dll -o - >/dev/null
