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
# JSON is read by the functions of tests/json. A pattern that has a member's name and its colon reads JSON as text, where order, blanks and escapes vary.
grep -rnIE --include='*.sh' --include=prelude '(^|[^a-z_])(grep|sed|awk|has|has_no)[[:space:]].*\\?"[A-Za-z_.]+\\?":' tests bench/cases 2>/dev/null | grep -vE '^tests/shell(_test)?\.sh:' | sed 's/^/FAILED: JSON read as text: /' | grep . && failed=1
[ $count -ge 1 ] || {
	echo "FAILED: there are no scripts"
	failed=1
}
echo "$count scripts"
exit $failed
