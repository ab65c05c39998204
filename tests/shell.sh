#!/bin/sh
# Every shell script of the tree parses, the ones that no other test starts too: ./check, .ci/run, demo.
#
#   shell.sh [FOLDER]      FOLDER: the tree, by default this one
set -u
cd "${1:-$(dirname "$(realpath "$0")")/..}" || exit 1
failed=0 count=0
for script in $(grep -rlIE --exclude-dir='build*' --exclude-dir=.git -m 1 '^#!/bin/(ba)?sh( |$)' .); do
	shell=$(sed -n '1s|^#!/bin/\([a-z]*\).*|\1|p' "$script")
	[ -n "$shell" ] || continue # the text has a script in it
	count=$((count + 1))
	"$shell" -n "$script" || {
		echo "FAILED: $script does not parse"
		failed=1
	}
done
[ $count -ge 1 ] || {
	echo "FAILED: there are no scripts"
	failed=1
}
echo "$count scripts"
exit $failed
