# A stack walk follows each event that wants one: not those that the list leaves out, by symbol and by task.
spoor gen -q "$data/manifest/stacks.man" -o out --only libspoor
sed -n '/After an event/,$p' out/acmewalks.h
printf '# events\r\nnomac:Step:::StepMade\nnostack:::\nnostack:Step:Acme-Walks::StepLost\r\nnostack:Quiet:Acme-Walks::\nnostack::Other-Provider::\nnostack:Step:::None' >list
echo "---- with a list"
spoor gen -q "$data/manifest/stacks.man" -o less --only libspoor --no-walks list
grep -c stack_walk_ less/acmewalks.h
grep -A 5 'void acmewalks_Step.*(.*)$' less/acmewalks.h
echo "---- without the list's file"
spoor gen -q "$data/manifest/stacks.man" -o none --no-walks nothing
