spoor env || echo "exit $?"
spoor env -p 4194303 || echo "exit $?"
