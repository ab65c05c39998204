spoor recover || echo "exit $?"
spoor recover a b || echo "exit $?"
spoor recover a -p 1 || echo "exit $?"
spoor recover nothing-there || echo "exit $?"
spoor recover /dev/zero || echo "exit $?"
echo 'no rings' >text
spoor recover text || echo "exit $?"
# Without recovered events no file is written, and an existing file is kept.
echo mine >kept
spoor recover text -o kept || echo "exit $?"
cat kept
ls
