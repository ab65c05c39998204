# Provider names that are words of C or C++, headers or functions of libc: files and names in the code differ from them.
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
for name in class Class Acme-Class stdio Time log linux errno Windows-Events Microsoft-Windows-Threads; do
	sed -E "s/name=\"Acme-Shop\"/name=\"$name\"/" "$data/manifest/shop.man" >name.man
	spoor gen name.man -o out --list | head -n 1
	spoor gen -q name.man -o "out-$name" || echo "exit $?"
	grep -hE '^(SPOOR_PROVIDER|#define (LTTNG_UST_)?TRACEPOINT_PROVIDER|#define TRACEPOINT_PROVIDER|TRACEPOINT_EVENT_CLASS|provider )' "out-$name"/* | head -n 3
done
jq -r '.providers[] | "\(.shortName) \(.prefix)"' out-linux/events.json
# Two providers of one name in C.
sed -E -e 's/name="Acme-Shop"/name="Class"/' "$data/manifest/shop.man" >two.man
sed -n '/<provider /,/<\/provider>/p' "$data/manifest/shop.man" | sed -e 's/name="Acme-Shop"/name="ClassEvents"/' -e 's/guid="{[0-9a-fA-F]/guid="{0/' >second
sed -i -e '/<\/provider>/r second' two.man
spoor gen two.man -o two --list || echo "exit $?"
