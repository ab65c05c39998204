# A trace of a runtime has no native frames.
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
spoor symbols list "$data/nettrace/runtime-v4.nettrace"
spoor symbols list --json "$data/nettrace/runtime-v4.nettrace" | jq -c '(.. | objects | select(.file).file) |= sub(".*/"; "")'
