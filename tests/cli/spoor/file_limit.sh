# A limit of file sizes is an error like a full disk, without SIGXFSZ; no file is left.
cp "$data/nettrace/gc-dynamic.nettrace" x.nettrace
(
	ulimit -f 1
	spoor flame x.nettrace -o x.svg || echo "exit $?"
	spoor report x.nettrace -o x.txt --json || echo "exit $?"
)
ls -A
