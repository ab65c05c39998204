#!/bin/sh
# run.sh [--golden] SPOOR CASE.sh...: runs each case and compares its output with the files next to it: CASE.out, CASE.err and CASE.code
# (a missing file means no output, or exit code 0). --golden writes these files instead.
#
# A case is a piece of shell run by `sh -eu` in an empty folder, with `spoor` in PATH, $data = tests/data, no terminal, no colour,
# UTC, English. A case that cannot run here prints "skipped: REASON" on stdout and exits 77.
set -u

golden=
[ "${1:-}" = --golden ] && golden=1 && shift
[ $# -ge 2 ] || {
	sed -n '2,6p' "$0" >&2
	exit 2
}
spoor=$(realpath "$1") && shift
data=$(realpath "$(dirname "$0")/../data")
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$spoor" "$scratch/bin/spoor"

# compare EXPECTED GIVEN: compares two files; a missing one is empty.
compare() {
	expected=$1
	given=$2
	[ -e "$expected" ] || expected=/dev/null
	diff -u --label "expected ${1##*/}" --label given "$expected" "$given"
}

# keep EXPECTED GIVEN: writes the expected file, or removes it if the output is empty.
keep() {
	if [ -s "$2" ]; then
		cp "$2" "$1"
	else
		rm -f "$1"
	fi
}

failed=0
skipped=0
for case in "$@"; do
	base=${case%.sh}
	rm -rf "$scratch/here"
	mkdir "$scratch/here"
	script=$(realpath "$case")
	(
		cd "$scratch/here" || exit 99
		unset NO_COLOR COLUMNS DISPLAY WAYLAND_DISPLAY
		PATH=$scratch/bin:$PATH LC_ALL=C.UTF-8 TZ=UTC TERM=dumb data=$data exec sh -eu "$script"
	) >"$scratch/out" 2>"$scratch/err" </dev/null
	code=$?
	if [ $code = 77 ] && grep -q '^skipped: .' "$scratch/out"; then
		cat "$scratch/out"
		skipped=1
		continue
	fi
	[ $code = 0 ] && : >"$scratch/code" || echo $code >"$scratch/code"
	for part in out err code; do
		if [ -n "$golden" ]; then
			keep "$base.$part" "$scratch/$part"
		elif ! compare "$base.$part" "$scratch/$part"; then
			failed=1
		fi
	done
done
[ $failed = 0 ] || exit 1
[ $skipped = 0 ] || exit 77
