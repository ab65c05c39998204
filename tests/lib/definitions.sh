#!/bin/sh
# definitions.sh BUILD-FOLDER COMPILER: two source files of one program that define an event differently: registration says so and names both. Two that
# include one header are content.
set -eu
build=$(realpath "$1")
cc=$2
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >main.c <<'END'
#include <stdio.h>
#include <spoor/spoor.h>
SPOOR_PROVIDER(shop, "Shop")
SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, id))
void other(void);
int main(void)
{
	char text[512];
	printf("%d", spoor_provider_register(&shop));
	spoor_provider_conflict(text, sizeof(text));
	printf(" %s\n", text);
	shop_order(7);
	other();
	return 0;
}
END
# try FIELDS ID CALL: what the program prints if the other file defines the event with these.
try() {
	cat >other.c <<END
#include <spoor/spoor.h>
SPOOR_PROVIDER(shop, "Shop")
SPOOR_EVENT(shop, order, $2, SPOOR_INFO, 0x1, $1)
void other(void);
void other(void)
{
	$3;
}
END
	"$cc" -O1 -Wall -Wextra -Werror -I"$top/include" main.c other.c "$build/libspoor.a" -lm -ldl -pthread -o program
	timeout 60 ./program
}
event="event 1 'order' of 'Shop', version 0, level 4, keywords 0x1 (u32 id)"
result=$(try '(u32, id)' 1 'shop_order(8)')
[ "$result" = "0 " ] || {
	echo "FAILED: one definition in two files: $result"
	exit 1
}
result=$(try '(text, name)' 1 'shop_order("tea")')
[ "$result" = "-17 $event conflicts with event 1 'order' of 'Shop', version 0, level 4, keywords 0x1 (text name)" ] || {
	echo "FAILED: other fields in the other file: $result"
	exit 1
}
result=$(try '(u32, id)' 2 'shop_order(8)')
[ "$result" = "-17 $event conflicts with event 2 'order' of 'Shop', version 0, level 4, keywords 0x1 (u32 id)" ] || {
	echo "FAILED: another id in the other file: $result"
	exit 1
}
