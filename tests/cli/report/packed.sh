# A packed recording gives the same report as the unpacked one: by its name, by any name, from a pipe. Truncated and damaged files are reported.
command -v zstd >/dev/null || { echo "skipped: zstd is not installed"; exit 77; }
cp "$data/nettrace/runtime-v4.nettrace" plain.nettrace
spoor report plain.nettrace >plain.txt
zstd -q plain.nettrace -o x.nettrace.zst
spoor report x.nettrace.zst | sed 's/x\.nettrace\.zst/plain.nettrace/g' | cmp - plain.txt && echo same
cp x.nettrace.zst recording
spoor report recording | sed 's/recording$/plain.nettrace/' | wc -l
spoor report - <x.nettrace.zst | wc -l
spoor flame x.nettrace.zst
head -c 1500 x.nettrace.zst >torn.zst
spoor report torn.zst >torn.txt || echo "exit $?"
head -c 1500 x.nettrace.zst >damaged.zst
printf '\377\377\377\377\377\377\377\377' >>damaged.zst
tail -c +1509 x.nettrace.zst >>damaged.zst
spoor report damaged.zst >damaged.txt || echo "exit $?"
rm plain.nettrace recording torn.* damaged.*
spoor report >newest.txt
