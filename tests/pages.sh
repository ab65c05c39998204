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

if command -v mandoc >/dev/null; then
	mandoc -T lint -W warning "$top"/docs/man/*.[17] || wrong "mandoc finds fault with a page"
else
	echo "skipped: the pages are not linted, mandoc is not installed"
fi

if command -v bash >/dev/null; then
	PATH=$(dirname "$spoor"):$PATH bash "$top/tests/completion.bash" "$top/completion/spoor.bash" || failed=1
else
	echo "skipped: completion is not tried, bash is not installed"
fi
exit $failed
