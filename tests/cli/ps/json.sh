# Every member of the JSON exists, also for this shell, which is no .NET program.
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
spoor ps -p $$ --json | jq -r 'keys_unsorted[], (.processes[0] | keys_unsorted[])'
spoor ps -p $$ --json | jq -c '.processes[0] | {dotnet, kind}'
