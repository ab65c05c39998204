# A selection that leaves one sample: no plural with a count of one.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor report x.nettrace --to 8ms | grep '^shown:'
spoor flame x.nettrace --to 8ms
grep -m 1 -o '1 sample, ' x.svg
! spoor report x.nettrace --to 8ms | grep -E '(^|[^0-9,.])1 (samples|frames|processes|threads|functions|events|CPUs|kinds|periods)\b'
