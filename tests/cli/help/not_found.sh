# The name of a verb in another tool, a misspelt one, and one without a similar verb.
spoor help collect || echo "exit $?"
spoor help repotr || echo "exit $?"
spoor help nope || echo "exit $?"
spoor monitor || echo "exit $?"
