spoor perfmap || echo "exit $?"
spoor perfmap on || echo "exit $?"
spoor perfmap sometimes -p 1 || echo "exit $?"
