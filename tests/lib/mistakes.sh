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

# good COMPILER-AND-MODE DECLARATION: is no mistake.
good() {
	printf '#include <spoor/spoor.h>\nSPOOR_PROVIDER(shop, "Shop")\n%s\nint main(void) { shop_order(7, "x"); return shop_order_enabled(); }\n' "$2" >good.c
	# shellcheck disable=SC2086 # a list of words
	$1 -Wall -Wextra -Werror -fsyntax-only -isystem "$top/include" good.c
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
	event='SPOOR_EVENT(shop, order, 1, SPOOR_INFO'
	part='a field has a type and a name, with a comma: (TYPE, NAME) in place of'
	one "$mode" "$event, 0x1, (u32, id), (text))" "shop_order: $part '(text)'"
	one "$mode" "$event, 0x1, (u32, id), (text name))" "shop_order: $part '(text name)'"
	one "$mode" "$event, 0x1, (u32, id, number), (text, name))" "shop_order: the field 'id' has too many parts"
	one "$mode" "$event, 0x1, (u32, id, number, more, still), (text, name))" "shop_order: the field 'id' has too many parts"
	one "$mode" "$event, 0x1, (object, place), (text, name))" "shop_order: the field 'place' needs the TAG of its struct: (object, place, TAG)"
	one "$mode" "$event, 0x1, (object_array, places), (text, name))" "shop_order: the field 'places' needs the TAG of its struct: (object_array, places, TAG)"
	one "$mode" "$event, 0x1, (u32, (id)), (text, name))" "shop_order: a name with parentheses has two parts: (NAME, TEXT) in place of '(id)'"
	one "$mode" "$event)" 'shop_order: keywords are missing after the level: write 0 for none'
	one "$mode" "$event, (u32, id))" 'shop_order: keywords are missing after the level: write 0 for none'
	one "$mode" "$event, (u32, id), (text, name))" 'shop_order: keywords are missing after the level: write 0 for none'
	one "$mode" 'SPOOR_EVENT_NAMED(shop, order, "Order", 1, 256, SPOOR_INFO, 0, 0x1, (u32, id), (text, name))' 'shop_order: the version is not a number from 0 to 255'
	one "$mode" 'SPOOR_EVENT_NAMED(shop, order, "Order", 1, 0, SPOOR_INFO, 999, 0x1, (u32, id), (text, name))' 'shop_order: the opcode is not a number from 0 to 255'
	one "$mode" "SPOOR_STRUCT(shop_box, (u32, a)) SPOOR_STRUCT(shop_place, (object_array, boxes, shop_box)) $event, 0x1, (u32, id), (text, name))" \
		"shop_place: the member 'boxes' is an array of structs, which a struct cannot have"
	one "$mode" "SPOOR_PROVIDER(nobody, \"\") $event, 0x1, (u32, id), (text, name))" "nobody: the provider's name is empty"
	good "$mode" "$event, 0x1 | 0x2, (u32, id), (text, (name, \"a name\")))"
	good "$mode" "$event, (0x1 | 0x2), (u32, id), (text, name))"
	good "$mode" "$event, (uint64_t)1 << 3, (u32, id), (text, name))"
	good "$mode" "$event, UINT64_C(1), (u32, id), (text, name)) $(echo "$event" | sed 's/order, 1/empty, 2/'), UINT64_C(1))"
	ran=$((ran + 1))
done
[ $ran -gt 0 ]
echo "$ran compilers"
