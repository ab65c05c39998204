spoor flame --width 5 || echo "exit $?"
spoor flame --format png || echo "exit $?"
