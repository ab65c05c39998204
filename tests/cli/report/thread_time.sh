# The runtime's own samples, in a file without the CPU clocks of threads: all outputs are labelled thread time.
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor report x.nettrace | head -n 9
spoor report x.nettrace --tree | grep 'thread s$'
spoor report x.nettrace --json | jq -r .weighing
spoor flame x.nettrace
grep -m 1 -o 'samples, [0-9.]* thread s' x.svg
! grep 'CPU s' x.svg
spoor flame x.nettrace --format folded -o - | awk '{ n += $NF } END { print n " samples" }'
