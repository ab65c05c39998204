# A trace of a runtime has no native frames.
spoor symbols list "$data/nettrace/runtime-v4.nettrace"
spoor symbols list --json "$data/nettrace/runtime-v4.nettrace" | sed 's|"file":"[^"]*/|"file":"|'
