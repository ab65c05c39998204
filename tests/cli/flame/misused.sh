spoor flame --width 5 || echo "exit $?"
spoor flame --format png || echo "exit $?"
# A picture of another format is refused before anything is read or written.
spoor flame none.nettrace -o x.png || echo "exit $?"
spoor flame none.nettrace -f folded -o a/x.PDF || echo "exit $?"
ls
