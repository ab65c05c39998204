# A filter that matches nothing: a message with the names that no process or module has, exit code 1, and no flame graph.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor report x.nettrace -p 4 | sed -n '/^no sample/,$p'
spoor report x.nettrace -p 4 >/dev/null || echo "exit $?"
spoor report x.nettrace -n Shop -n 'pid*' >/dev/null || echo "exit $?"
spoor report x.nettrace -m Shop.dll >/dev/null || echo "exit $?"
spoor report x.nettrace --from 15:20:33 >/dev/null || echo "exit $?"
spoor report x.nettrace --callers Nope >/dev/null || echo "exit $?"
spoor flame x.nettrace -n Nope -m Shop.dll -o - || echo "exit $?"
spoor flame x.nettrace -p 99999 -o z.svg || echo "exit $?"
spoor flame x.nettrace -p 23789 --to 1us -o z.svg || echo "exit $?"
ls
