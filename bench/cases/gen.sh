# spoor gen of .NET's manifest (515 events, all outputs), beside a Python script that reads it with an XML parser and writes one list of it: --rounds N (21)
rounds=21
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	*) die "gen takes --rounds" ;;
	esac
	shift 2
done
manifest=$top/tests/data/manifest/ClrEtwAll.man
build spoor
rm -rf "$out/gen" "$out"/gen-*.figures

# took NAME COMMAND...: runs it, and appends its elapsed milliseconds to the figures of NAME.
took() {
	local name=$1 begin
	shift
	begin=$(date +%s%N)
	"$@" >"$out/gen.log" 2>&1 || die "it failed: $*: $(tail -n 2 "$out/gen.log")"
	echo $((($(date +%s%N) - begin) / 10000)) | awk '{ print $1 / 100 }' >>"$out/gen-$name.figures"
}
middle() {
	sort -g "$out/gen-$1.figures" | awk '{ v[NR] = $1 } END { printf "%.4g", v[int((NR + 1) / 2)] }'
}
spread() {
	sort -g "$out/gen-$1.figures" | awk -v name="$2" -v median="$(middle "$1")" 'NR == 1 { least = $1 } { most = $1 }
		END { printf "%-44s %7.1f ms (%.1f to %.1f, %d runs)\n", name, median, least, most, NR }'
}

# The first run writes the files, the others find them unchanged; so a new folder each time.
for round in $(seq "$rounds"); do
	took new "$spoor" gen -q "$manifest" -o "$out/gen-$round"
	took same "$spoor" gen -q "$manifest" -o "$out/gen-$round"
	rm -rf "$out/gen-$round"
	took script python3 scripts/generate-clr-events "$manifest"
done
spread new "spoor gen, all outputs, new files"
spread same "spoor gen, nothing changed"
spread script "scripts/generate-clr-events, one list"
awk -v ours="$(middle new)" -v peer="$(middle script)" 'BEGIN { printf "RATIO gen %.4g %.4g %.2f\n", ours, peer, peer / ours }'
