#!/bin/sh
# goto_definition.sh: in an editor (clangd), the definition of a generated function is the line with its SPOOR_EVENT. Skipped without clangd.
set -eu
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAILED: $*"
	exit 1
}

skip() {
	echo "skipped: $*"
	exit 77
}

command -v clangd >/dev/null || skip "clangd is not installed"
. "$top/tests/json"
cat >"$work/shop.c" <<'END'
#include <spoor/spoor.h>
SPOOR_PROVIDER(shop, "Shop")
SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, number))
SPOOR_EVENT_NAMED(shop, paid, "Paid", 2, 0, SPOOR_INFO, SPOOR_OPCODE_INFO, 0x1, (text, by), (u32, number))
SPOOR_EVENT(shop, closed, 3, SPOOR_INFO, 0x1)
int main(void)
{
	shop_order(1);
	shop_paid("card", 1);
	shop_closed();
	return shop_order_enabled();
}
END
echo "-I$top/include" >"$work/compile_flags.txt"

message() {
	printf 'Content-Length: %d\r\n\r\n%s' "${#1}" "$1"
}

# definition LINE: asks for the definition of the name in this line of main(), which begins in the second column. Lines count from 0.
definition() {
	message "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"textDocument/definition\",\"params\":{\"textDocument\":{\"uri\":\"file://$work/shop.c\"},\"position\":{\"line\":$1,\"character\":$2}}}"
}
{
	message '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
	message "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/didOpen\",\"params\":{\"textDocument\":{\"uri\":\"file://$work/shop.c\",\"languageId\":\"c\",\"version\":1,\"text\":$(jq -Rs . <"$work/shop.c")}}}"
	definition 7 3
	definition 8 3
	definition 9 3
	definition 10 10
	message '{"jsonrpc":"2.0","id":99,"method":"shutdown"}'
	message '{"jsonrpc":"2.0","method":"exit"}'
} >"$work/requests"
(cd "$work" && timeout 120 clangd --sync --background-index=0 --log=error <requests >answers 2>said) || fail "clangd: $(cat "$work/said")"
# One answer a line.
tr -d '\r' <"$work/answers" | sed 's/Content-Length: [0-9]*//g' | grep . >"$work/answers.json"
for pair in 7:2 8:3 9:4 10:2; do
	json_lines "$work/answers.json" 'map(select(.id == ($a | tonumber))) | .[0].result | length == 1 and .[0].range.start.line == ($b | tonumber) and (.[0].uri | endswith("shop.c"))' \
		"${pair%:*}" "${pair#*:}"
done
