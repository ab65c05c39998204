# A file of another format is an error without output.
printf 'this is no recording, whatever its name says' >x.nettrace
spoor report x.nettrace || echo "exit $?"
: >empty.nettrace
spoor report empty.nettrace || echo "exit $?"
spoor report nowhere.nettrace || echo "exit $?"
