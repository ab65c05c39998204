#!/bin/sh
# pages.sh SPOOR: each verb has a page with its options and no others, and with examples whose options exist; exit statuses are those of spoor(1); each option
# means the same everywhere; the completion offers them; mandoc has no warning; files that the Markdown pages name exist.
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

# The other direction: a page lists no option that its verb does not have.
for page in "$top"/docs/man/spoor-*.1; do
	verb=${page##*/spoor-}
	verb=${verb%.1}
	# ".It Fl p , Fl -pid Ar pid" names an option after each "Fl".
	sed -n 's/^\.It Fl //p' "$page" | sed 's/\\-/-/g; s/ , Fl /\n/g' | cut -d' ' -f1 | while read -r option; do
		case $option in
		-*) grep -q "^option $verb -$option " "$scratch/words" || echo "spoor-$verb.1 has -$option, which spoor $verb --help does not" ;;
		*) grep -qE "^option $verb [^ ]+ -$option " "$scratch/words" || [ "$option" = h ] || echo "spoor-$verb.1 has -$option, which spoor $verb --help does not" ;;
		esac
	done >"$scratch/odd"
	grep -v ' has --help, ' "$scratch/odd" >"$scratch/more" && wrong "$(cat "$scratch/more")"
	grep -q '^\.Sh EXIT STATUS$' "$page" || wrong "spoor-$verb.1 does not say how it exits"
done

# Examples: each page has some; their verbs and options exist. tests/feature/verbs/man_examples.sh runs them.
awk -f "$top/tests/man_examples.awk" "$top"/docs/man/*.[17] >"$scratch/examples"
for page in "$top"/docs/man/*.[17]; do
	name=$(basename "${page%.[17]}")
	grep -q "^$name$(printf '\t')" "$scratch/examples" || wrong "$name has no example"
done
cut -f3 "$scratch/examples" | sed 's/ -- .*//' | tr '|' '\n' | sed -nE 's/^ *(ssh [^ ]+ )?(sudo )?spoor //p' | while read -r verb rest; do
	grep -q "^verb $verb " "$scratch/words" || echo "an example has the verb $verb, which does not exist"
	# A command without "--", such as "sleep 10", must have no options: they would be taken for options of spoor.
	for word in $rest; do
		case $word in
		--?*) grep -q "^option $verb $word " "$scratch/words" || echo "an example of spoor $verb has $word, which does not exist" ;;
		-[a-zA-Z]) grep -qE "^option $verb [^ ]+ $word " "$scratch/words" || echo "an example of spoor $verb has $word, which does not exist" ;;
		esac
	done
done >"$scratch/odd"
[ ! -s "$scratch/odd" ] || wrong "$(cat "$scratch/odd")"

# Exit statuses as spoor(1) has them.
exits() {
	expected=$1
	shift
	"$spoor" "$@" >/dev/null 2>&1 </dev/null
	code=$?
	[ $code = "$expected" ] || wrong "spoor $*: exit status $code, not $expected"
}
exits 0 --help
exits 0 --version
exits 2 no-such-verb
while read -r kind verb _; do
	[ "$kind" = verb ] || continue
	exits 0 "$verb" --help
	exits 2 "$verb" --no-such-option
done <"$scratch/words"
for verb in report flame events; do
	exits 1 $verb "$scratch/no-such-file"
done

# One meaning everywhere: a letter has one long name, a long name has one letter and one kind of argument.
grep '^option ' "$scratch/words" | awk '$4 != "-" { print $4, $3 }' | sort -u | cut -d' ' -f1 | uniq -d >"$scratch/letters"
# Exceptions: --tree selects the call tree of a report, and the descendants of a process elsewhere; the values of --format differ by verb;
# gen and convert write several files, so that their --output is a folder; --to selects the tracer of forward and inject and the format of convert, and the end of a time span elsewhere.
grep '^option ' "$scratch/words" | awk '($2 != "report" || $3 != "--tree") && (($2 != "gen" && $2 != "convert") || $3 != "--output") && (($2 != "forward" && $2 != "inject" && $2 != "convert") || $3 != "--to") { print $3, $4, $3 == "--format" ? "" : $5 }' | sort -u | cut -d' ' -f1 | uniq -d >"$scratch/names"
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

# The README has an example of each verb, with options that exist.
while read -r kind verb _; do
	[ "$kind" != verb ] || grep -q "spoor $verb" "$top/README.md" || wrong "README.md has no example of $verb"
done <"$scratch/words"
sed -nE 's/.*`(sudo )?spoor ([^`]*)`.*/\2/p' "$top/README.md" | while read -r verb rest; do
	for word in $rest; do
		case $word in
		--?*) grep -q "^option $verb $word " "$scratch/words" || echo "README.md: spoor $verb has no $word" ;;
		-[a-zA-Z]) grep -qE "^option $verb [^ ]+ $word " "$scratch/words" || echo "README.md: spoor $verb has no $word" ;;
		esac
	done
done >"$scratch/odd"
[ ! -s "$scratch/odd" ] || wrong "$(cat "$scratch/odd")"


# Files that the Markdown pages name exist: links, and paths in backticks that have a folder. Names to be replaced have "foo" or a capital word.
for page in "$top"/*.md "$top"/docs/*.md "$top"/docs/*/*.md "$top"/bench/*.md; do
	folder=$(dirname "$page")
	grep -oE '\]\([^)#:]+' "$page" | cut -c3- | grep -v '^https*$' | while read -r path; do
		[ -e "$folder/$path" ] || echo "${page#"$top"/} has a link to $path, which is not there"
	done
	grep -oE '`[a-z_0-9-]+(/[a-zA-Z_0-9.-]+)+\.(c|h|def|sh|md|py|cs|map|json)`' "$page" | tr -d '`' | sort -u | grep -v foo | while read -r path; do
		case $path in
		spoor/*) path=include/$path ;;
		esac
		[ -e "$top/$path" ] || [ -e "$top/src/$path" ] || [ -e "$top/tests/$path" ] || [ -e "$top/tests/feature/$path" ] || [ -e "$folder/$path" ] ||
			echo "${page#"$top"/} names $path, which is not there"
	done
done >"$scratch/odd"
[ ! -s "$scratch/odd" ] || wrong "$(cat "$scratch/odd")"

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
