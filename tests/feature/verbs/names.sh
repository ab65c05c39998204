#!/bin/sh
# Control characters and invalid UTF-8 in process names, paths and arguments are escaped on the terminal and in SVG, JSON and folded output.
. "$(dirname "$(realpath "$0")")/../prelude"

command -v iconv >/dev/null || skip "no iconv here to check UTF-8 with"

# clean FILE: fails unless it is UTF-8 without control characters but newline. Newlines in JSON and folded output are checked by their lines.
clean() {
	iconv -f UTF-8 -t UTF-8 <"$1" >/dev/null 2>&1 || fail "$1 is not UTF-8"
	count=$(tr -d '\n' <"$1" | LC_ALL=C tr -cd '\000-\037\177' | wc -c)
	[ "$count" = 0 ] || fail "$1 has $count control characters: $(LC_ALL=C grep -a -m 1 "$(printf '[\001-\011\013-\037\177]')" "$1" | od -c | head -n 4)"
	# C1 controls (U+0080 to U+009F) are commands for terminals, too.
	! LC_ALL=C grep -aq "$(printf '\302[\200-\237]')" "$1" || fail "$1 has C1 control characters"
}

n=0
for name in 'with space' "$(printf 'new\nline')" "$(printf 'esc\033[31m\007')" 'größe→é' "$(printf 'bad\377\200\303')" \
	"$(printf 'c1\302\233m')" '<&">]]>' "semi;colon" "$(printf 'tab\tcr\rdel\177')" 'back\slash%s%n' "$(printf '\342\200\256rtl')"; do
	n=$((n + 1))
	for way in comm path argument; do
		rm -f x.nettrace
		case $way in
		comm) code_of "$spoor" record -F 499 -o x.nettrace -- "$target" rename "$name" 60 ;;
		path)
			cp "$target" "./$name" 2>/dev/null || continue
			code_of "$spoor" record -F 499 -o x.nettrace -- "./$name" spin 60
			;;
		argument) code_of "$spoor" record -F 499 -o x.nettrace -- sh -c "$target spin 60" "$name" ;;
		esac
		expect_code 0 "name $n as $way"
		cp err "err.$n.$way"
		clean "err.$n.$way"
		code_of "$spoor" report x.nettrace
		expect_code 0 "report of name $n as $way"
		cp out "report.$n.$way"
		clean "report.$n.$way"
		has out 'spin_here'
		"$spoor" report --json x.nettrace >json 2>err || fail "report --json"
		clean json
		[ "$(wc -l <json)" -le 1 ] || fail "a newline in JSON"
		json json 'any(.processes[].functions[]; .name == "spin_here")'
		folded x.nettrace folded
		clean folded
		has_no folded ' $|^ |^$'
		[ "$(grep -vcE '^[^;]+(;[^;]+)+ [0-9]+$' folded)" = 0 ] || fail "a folded line without a count: $(grep -vE '^[^;]+(;[^;]+)+ [0-9]+$' folded | head -n 2)"
		"$spoor" flame x.nettrace -o x.svg >out 2>err || fail "flame"
		# The script in the SVG has tabs; names must not.
		tr -d '\t' <x.svg >svg
		clean svg
		[ $way != path ] || rm -f "./$name"
	done
done

# The same in messages about files and targets.
# refused CODE option...: spoor ends with this exit code and a message that has the name, escaped.
refused() {
	refused_code=$1 && shift
	code_of "$spoor" "$@"
	expect_code "$refused_code" "$*"
	clean err
	has err 'esc\\x1b\[31m\\nline|bad'
}
for name in "$(printf 'esc\033[31m\nline')" "$(printf 'bad\377')"; do
	refused 1 record -o "none/$name" -- true
	refused 1 record -n "$name"
	refused 127 record -q -o x.nettrace -- "./$name"
	refused 1 report "$name"
	refused 2 record -p "$name"
	refused 2 record --duration "$name"
	refused 127 record "$name"
	refused 2 "$name"
done
exit 0
