#!/bin/sh
# mistakes.sh COMPILER: a mistake in the declaration of an event is one error, at the declaration, with a sentence that names the event and the mistake.
set -eu
cc=$1
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# one COMPILER-AND-MODE DECLARATION SENTENCE
one() {
	printf '#include <spoor/spoor.h>\nSPOOR_PROVIDER(shop, "Shop")\n%s\nint main(void) { shop_order(7, "x"); return shop_order_enabled(); }\n' "$2" >bad.c
	# shellcheck disable=SC2086 # a list of words
	if $1 -Wall -Wextra -fsyntax-only -isystem "$top/include" bad.c >out 2>&1; then
		echo "FAILED: $1 accepts $2"
		exit 1
	fi
	if [ "$(grep -c 'error:' out)" != 1 ] || ! sed "s/\\\\'/'/g" out | grep -F "$3" | grep -q '^bad\.c:3:'; then
		echo "FAILED: $1 on $2, where '$3' is expected in one line:"
		cat out
		exit 1
	fi
}

# fields COUNT: so many fields of an event.
fields() {
	for i in $(seq "$1"); do
		printf ', (u32, f%d)' "$i"
	done
}

ran=0
for mode in "$cc -std=c11" 'clang -std=c11' 'g++ -std=c++17 -x c++'; do
	command -v "${mode%% *}" >/dev/null || continue
	# shellcheck disable=SC2086
	echo 'int x;' | ${mode%% -x *} -fsyntax-only -x "$(case $mode in *++*) echo c++ ;; *) echo c ;; esac)" - 2>/dev/null || continue
	one "$mode" 'SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, id), (u23, number))' "shop_order: 'u23' of the field 'number' is not a type"
	one "$mode" 'SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, u32, number)' "shop_order: write a field as (TYPE, NAME), with parentheses, in place of 'u32'"
	one "$mode" 'SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, id), text)' "shop_order: write a field as (TYPE, NAME), with parentheses, in place of 'text'"
	one "$mode" "SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1$(fields 25))" 'shop_order: an event has at most 24 fields'
	one "$mode" "SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1$(fields 40))" 'shop_order: an event has at most 24 fields'
	one "$mode" 'SPOOR_EVENT(shop, order, 70000, SPOOR_INFO, 0x1, (u32, id), (text, name))' 'shop_order: the id is not a number from 0 to 65535'
	one "$mode" 'SPOOR_EVENT(shop, order, -1, SPOOR_INFO, 0x1, (u32, id), (text, name))' 'shop_order: the id is not a number from 0 to 65535'
	one "$mode" 'SPOOR_EVENT(shop, order, 1, 6, 0x1, (u32, id), (text, name))' 'shop_order: the level is not a number from 0 to 5'
	one "$mode" 'SPOOR_STRUCT(shop_place, (u99, port)) SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, id), (text, name))' \
		"shop_place: 'u99' of the field 'port' is not a type"
	ran=$((ran + 1))
done
[ $ran -gt 0 ]
echo "$ran compilers"
