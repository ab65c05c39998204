spoor dump || echo "exit $?"
spoor dump --type whole -p 1 || echo "exit $?"
spoor dump x.core -p 1 || echo "exit $?"
