spoor heap || echo "exit $?"
spoor heap report || echo "exit $?"
spoor heap roots x.gcdump || echo "exit $?"
spoor heap diff a.gcdump || echo "exit $?"
spoor heap --by name -p 1 || echo "exit $?"
spoor heap report none.gcdump || echo "exit $?"
echo 'not a heap' >x.gcdump
spoor heap report x.gcdump || echo "exit $?"
