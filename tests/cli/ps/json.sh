# Every member is there, and this shell is no .NET program.
spoor ps -p $$ --json | tr ',{' '\n\n' | sed -n 's/^"\([a-z_]*\)":.*/\1/p'
spoor ps -p $$ --json | grep -o '"dotnet":false,"kind":""'
