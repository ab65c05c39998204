#!/bin/sh
# pages.sh SPOOR: each verb has a page, each option stands in it, each option means the same everywhere, the completion offers them, and
# the pages are clean for mandoc.
set -u
spoor=$1
top=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

wrong() {
	echo "$*"
	failed=1
}

"$spoor" help --completion >"$scratch/words" || exit 1
[ "$(grep -c '^verb ' "$scratch/words")" -ge 1 ] || wrong "help --completion names no verb"

while read -r kind verb name letter _; do
	page=$top/docs/man/spoor-$verb.1
	if [ "$kind" = verb ]; then
		[ -e "$page" ] || wrong "no page $page"
		grep -q "^\.It Xr spoor-$verb 1" "$top/docs/man/spoor.1" || wrong "spoor.1 does not name $verb"
	elif [ -e "$page" ]; then
		long="Fl -$(echo "${name#--}" | sed 's/-/\\\\*-/g')"
		if [ "$letter" = - ]; then
			grep -qE "^\.It $long( |$)" "$page" || wrong "spoor-$verb.1 does not have $name"
		else
			grep -qE "^\.It Fl ${letter#-} , $long( |$)" "$page" || wrong "spoor-$verb.1 does not have $letter, $name"
		fi
	fi
done <"$scratch/words"

# One meaning everywhere: a letter stands for one long name, a long name has one letter and one kind of argument.
grep '^option ' "$scratch/words" | awk '$4 != "-" { print $4, $3 }' | sort -u | cut -d' ' -f1 | uniq -d >"$scratch/letters"
# But --tree: the callers and callees of a report, the descendants of a process elsewhere. And each verb has formats of its own.
grep '^option ' "$scratch/words" | awk '$2 != "report" || $3 != "--tree" { print $3, $4, $3 == "--format" ? "" : $5 }' | sort -u | cut -d' ' -f1 | uniq -d >"$scratch/names"
cat "$scratch/letters" "$scratch/names" >"$scratch/doubtful"
while read -r word; do
	wrong "$word has two meanings: $(grep -- " $word " "$scratch/words" | awk '{ print $2, $3, $4, $5 }' | tr '\n' ';')"
done <"$scratch/doubtful"

# see_also PAGE: the pages that its SEE ALSO names.
see_also() {
	awk '/^\.Sh/ { also = $0 ~ /SEE ALSO/ } also && $1 == ".Xr" { print $2 }' "$1"
}

# The overview leads to every verb and to the library, and every verb back to the overview; references to spoor pages lead to pages that exist.
see_also "$top/docs/man/spoor.1" >"$scratch/also"
for page in "$top"/docs/man/*.[17]; do
	name=$(basename "${page%.[17]}")
	[ "$name" = spoor ] || grep -qx "$name" "$scratch/also" || wrong "SEE ALSO of spoor.1 does not name $name"
	[ "$name" = spoor ] || see_also "$page" | grep -qx spoor || wrong "SEE ALSO of $name does not name spoor"
	for named in $(awk '$1 == ".Xr" || $2 == "Xr" { sub(/.*Xr /, ""); print $1 }' "$page" | grep spoor); do
		[ -e "$top/docs/man/$named.1" ] || [ -e "$top/docs/man/$named.7" ] || wrong "$name names a page $named, which is not there"
	done
done

# The README names every verb that looks at a process, with a command to paste.
for verb in record report flame events ps trace counters heap stacks recover doctor; do
	grep -q "spoor $verb" "$top/README.md" || wrong "README.md does not name $verb"
done
for verb in counters heap stacks; do
	grep -qE "spoor $verb -p [0-9]+" "$top/README.md" || wrong "README.md has no example of $verb"
done

# The rendered page, a paragraph at a time: quotes are not nested, brackets pair, no blank before a closing one. `.Pq Dq a , Dq b` nests quotes, for one.
cat >"$scratch/pairs.awk" <<'AWK'
function check(   i, c, want, open) {
	open = ""
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (c == "(" || c == "[" || c == "{")
			open = open c
		if (c != ")" && c != "]" && c != "}")
			continue
		want = c == ")" ? "(" : c == "]" ? "[" : "{"
		if (substr(open, length(open)) != want) {
			print name ": stray " c ":" text
			break
		}
		open = substr(open, 1, length(open) - 1)
	}
	if (open != "")
		print name ": stray " open ":" text
	if (text ~ /<<[^>]*<<|<‘[^’]*<‘/)
		print name ": nested quotes:" text
	if (text ~ /[^ ] [)\]]|[(\[] [^ ]/)
		print name ": a blank inside brackets:" text
	text = ""
}
/^[ \t]*$/ { check(); next }
{ gsub(/“/, "<<"); gsub(/”/, ">>"); gsub(/‘/, "<‘"); text = text " " $0 }
END { check() }
AWK

if command -v mandoc >/dev/null; then
	mandoc -T lint -W warning "$top"/docs/man/*.[17] || wrong "mandoc finds fault with a page"
	for page in "$top"/docs/man/*.[17]; do
		mandoc -T utf8 "$page" | sed 's/.\x08//g' | LC_ALL=C awk -v name="${page##*/}" -f "$scratch/pairs.awk" >"$scratch/odd"
		[ ! -s "$scratch/odd" ] || wrong "$(cat "$scratch/odd")"
	done
else
	echo "skipped: the pages are not linted, mandoc is not installed"
fi

if command -v bash >/dev/null; then
	PATH=$(dirname "$spoor"):$PATH bash "$top/tests/completion.bash" "$top/completion/spoor.bash" || failed=1
else
	echo "skipped: completion is not tried, bash is not installed"
fi
exit $failed
