#!/bin/sh
# api_pages.sh: each public function of libspoor has a manual page of section 3 with a declaration and a description, and mandoc accepts it.
set -eu
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$top/scripts/api-pages" "$work/man3"

fail() {
	echo "FAILED: $*"
	exit 1
}

# All functions of the headers, except those for the macros of events (event_macros.h) and for generated code, and names for internal use, which end with _.
cd "$top/include/spoor"
functions=$(sed -nE 's/^(SPOOR_API|static inline) .*[ *](spoor_[a-z0-9_]*[a-z0-9])\(.*/\2/p' spoor.h activity.h code.h counter.h logger.h recover.h sink.h)
for name in $functions $(sed -nE 's/^(spoor_[a-z0-9_]*[a-z0-9])\(.*/\1/p' spoor.h activity.h code.h counter.h logger.h recover.h sink.h); do
	page=$work/man3/$name.3
	[ -s "$page" ] || fail "no page for $name()"
	page=$work/$(sed -n '1s/^\.so //p' "$page" | grep . || echo "man3/$name.3")
	grep -q "^\.Nm $name\( ,\)\?$" "$page" || fail "$page does not name $name()"
	grep -q "[ *]$name(" "$page" || grep -q "^$name(" "$page" || fail "$page does not declare $name()"
	sed -n '/^\.Sh DESCRIPTION/,/^\.Sh S/p' "$page" | grep -v '^\.' | grep -q '[a-z]' || fail "$page does not describe $name()"
done
count=$(echo "$functions" | wc -l)
[ "$count" -gt 60 ] || fail "only $count functions were found"
# A page has the structs that its functions take.
grep -q 'rotate_bytes; /\*' "$work/man3/spoor_session_start_file.3" || fail "no members of struct spoor_file_options"
# The same headers give the same pages.
"$top/scripts/api-pages" "$work/again"
diff -r "$work/man3" "$work/again" || fail "the pages differ"
if command -v mandoc >/dev/null; then
	for page in "$work"/man3/*.3; do
		grep -q '^\.so' "$page" || mandoc -Tlint -Wwarning "$page" >>"$work/lint" || :
	done
	[ ! -s "$work/lint" ] || fail "$(head -n 5 "$work/lint")"
fi
