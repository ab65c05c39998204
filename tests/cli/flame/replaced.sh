# An earlier file becomes FILE.old; the new file is private to its owner; a link is not followed, a pipe is written to.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
echo first >x.svg
umask 0
spoor flame x.nettrace -o x.svg 2>said
grep "is now" said >&2
rm said
spoor flame x.nettrace -q -o other.svg
spoor flame x.nettrace -q -o other.svg
rm other.svg*
cat x.svg.old
head -c 5 x.svg
echo
stat -c %a x.svg
ls -A
ln -s x.nettrace link.svg
spoor flame x.nettrace -o link.svg || echo "exit $?"
cmp x.nettrace "$data/nettrace/runtime-v4.nettrace"
mkfifo pipe
head -c 5 pipe &
spoor flame x.nettrace -f svg -o pipe 2>/dev/null || true
wait
echo
ls -A
