# A packed file has the same events as the unpacked one.
command -v zstd >/dev/null || { echo "skipped: zstd is not installed"; exit 77; }
spoor events "$data/nettrace/gc-dynamic.nettrace" >plain.txt
zstd -q "$data/nettrace/gc-dynamic.nettrace" -o x.nettrace.zst
spoor events x.nettrace.zst | cmp - plain.txt && echo same
spoor events - <x.nettrace.zst | cmp - plain.txt && echo same
