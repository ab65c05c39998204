#!/bin/sh
# clr_events.sh: holds src/trace/clr_events.def against the manifest that it was generated from: scripts/generate-clr-events makes the same bytes again, and the events are
# those of the answer key (ClrEtwAll.events.tsv: id, version, symbol, level, keywords, number of parameters, and whether LTTng's tracepoint has fields or packed
# bytes). Both are in tests/data/manifest. Skipped without python3.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
manifests=$top/tests/data/manifest
list=$top/src/trace/clr_events.def
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LC_ALL=C
export LC_ALL

command -v python3 >/dev/null || {
	echo "skipped: the generator needs python3"
	exit 77
}

"$top/scripts/generate-clr-events" "$manifests/ClrEtwAll.man" >"$work/list"
cmp "$work/list" "$list" || {
	echo "FAILED: scripts/generate-clr-events makes another src/trace/clr_events.def"
	exit 1
}

# The columns of the answer key, made from the list. A parameter is a field outside of structs, or a struct.
awk '
	BEGIN {
		name["PROVIDER_CLR"] = "Microsoft-Windows-DotNETRuntime"
		name["PROVIDER_CLR_RUNDOWN"] = name["PROVIDER_CLR"] "Rundown"
		name["PROVIDER_CLR_STRESS"] = name["PROVIDER_CLR"] "Stress"
		name["PROVIDER_CLR_PRIVATE"] = name["PROVIDER_CLR"] "Private"
		name["PROVIDER_MONO_PROFILER"] = "Microsoft-DotNETRuntimeMonoProfiler"
	}
	/^CLR_LAYOUT\(/ { layout = substr($1, 12); sub(/,.*/, "", layout); count = 0; next }
	/^\t/ { kind[layout, ++count] = $1 }
	/^CLR_EVENT\(/ {
		gsub(/^CLR_EVENT\(|\)$|,/, "")
		parameters = inside = 0
		form = "fields"
		for (i = 1; i <= $9; i++) {
			field = kind[$8, i]
			if (!inside)
				parameters++
			if (field ~ /^END/) {
				inside = 0
				continue
			}
			if (field ~ /^STRUCT/)
				inside = 1
			if (field ~ /^(STRUCT|ARRAY)/)
				form = "packed"
		}
		if (parameters > 9)
			form = "packed"
		print name[$1] "\t" $2 "\t" $3 "\t" $6 "\t" $4 "\t" $5 "\t" parameters "\t" form
	}' "$list" | sort >"$work/ours"
grep -v '^#' "$manifests/ClrEtwAll.events.tsv" | cut -f 1-6,9,10 | sort >"$work/key"
diff "$work/key" "$work/ours" >"$work/diff" || {
	head -n 20 "$work/diff"
	echo "FAILED: src/trace/clr_events.def has other events than ClrEtwAll.events.tsv"
	exit 1
}
echo "$(wc -l <"$work/ours") events agree"
