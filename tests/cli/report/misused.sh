spoor report -p shop || echo "exit $?"
spoor report --from 3s --to 2s || echo "exit $?"
spoor report --sort size || echo "exit $?"
spoor report a b || echo "exit $?"
