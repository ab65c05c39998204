# The JSON has every capability on every machine.
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
spoor doctor --json | jq -r '.capabilities[].name'
