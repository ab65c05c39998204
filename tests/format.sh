#!/bin/sh
# format.sh: every C file has the layout of .clang-format. Skipped without clang-format 14, as other versions lay out some lines differently.
# To repair: make format
set -eu
cd "$(dirname "$0")/.."

format=''
for name in clang-format-14 clang-format; do
	case $("$name" --version 2>/dev/null) in
	*'version 14.'*)
		format=$name
		break
		;;
	esac
done
[ -n "$format" ] || {
	echo "skipped: clang-format 14 is not installed"
	exit 77
}
files=$(find bench examples gc include lib src tests -name '*.[ch]' | sort)
[ -n "$files" ] || {
	echo "FAILED: no C file found"
	exit 1
}
# shellcheck disable=SC2086
"$format" --dry-run -Werror $files || {
	echo "FAILED: make format lays these files out"
	exit 1
}
