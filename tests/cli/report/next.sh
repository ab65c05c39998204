# The proposed commands have the same selection.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor report x.nettrace | sed -n '/^next/,$p'
spoor report x.nettrace -p 23789 | sed -n '/^next/,$p'
spoor report x.nettrace -n 'pid 2*' -n '*' --to 40ms --tree | sed -n '/^next/,$p'
