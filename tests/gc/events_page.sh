#!/bin/sh
# Checks docs/gc-events.md: its two examples build, and their events arrive; each dynamic event of the list has a section with its version, level and every field, and every section
# is of an existing event.
. "$(dirname "$0")/prelude"
cc=$2
page=$top/docs/gc-events.md

# The code blocks after "<!-- built: KIND -->".
blocks() {
	awk -v kind="<!-- built: $1 -->" '$0 == kind { next_one = 1; next } next_one && /^```c$/ { on = 1; next_one = 0; next } /^```$/ { on = 0 } on' "$page"
}

{
	printf '#ifndef GC_KNOWN\n#define GC_KNOWN(...)\n#endif\n#ifndef GC_DYNAMIC\n#define GC_DYNAMIC(...)\n#endif\n'
	blocks list
	grep -A1 '^GC_DYNAMIC(SpoorGCLost' "$top/gc/gc_events.def"
	printf '#undef GC_KNOWN\n#undef GC_DYNAMIC\n'
} >"$work/page.def"
same "entries of the page" "$(grep -cE '^GC_(KNOWN|DYNAMIC)\(' "$work/page.def")" 3
{
	printf '#include <assert.h>\n#include <stdio.h>\n#include "gc/events.h"\n'
	blocks code
	cat <<'END'
static unsigned marks, waits;
static uint64_t bytes;
static uint8_t seen[200];
static uint32_t seen_size;
static void mark(struct gc_sink *self, uint32_t heap, uint32_t kind, uint64_t n) { (void)self; (void)heap; marks++; bytes += n * (kind + 1); }
static void dynamic(struct gc_sink *self, const char *name, void *data, uint32_t size)
{
	(void)self;
	waits += name[7] == 'L' && name[11] == 'W' && !name[15];
	seen_size = size;
	for (uint32_t i = 0; i < size && i < sizeof(seen); i++)
		seen[i] = ((uint8_t *)data)[i];
}
static const struct gc_sink_table sink_table = { .FireGCMarkWithType = mark, .FireDynamicEvent = dynamic };
static struct gc_sink sink = { &sink_table };
static struct gc_sink *event_sink(struct gc_to_clr *self) { (void)self; return &sink; }
static const struct gc_to_clr_table ee_table = { .EventSink = event_sink };
static struct gc_to_clr ee = { &ee_table };
int main(void)
{
	gc_events_init(&ee);
	report_marked(100, 10);
	report_long_wait(7, 2000000);
	if (marks || waits)
		return 1;
	gc_events_control(GC_EVENT_DEFAULT, 1, 4);
	report_marked(100, 10);
	report_long_wait(7, 2000000);
	if (marks != 2 || bytes != 130 || waits != 1 || seen_size != 2 + 4 + 8 + 14 + 2 + 12)
		return 2;
	for (uint32_t i = 0; i < seen_size; i++)
		printf("%02x", seen[i]);
	printf("\n");
	return 0;
}
END
} >"$work/page.c"
"$cc" -std=gnu17 -O1 -Wall -Wextra -Werror -DGC_EVENTS_DEF='"page.def"' -I"$top" -I"$work" "$work/page.c" "$top/gc/events.c" -o "$work/page" || wrong "the page's examples do not compile"
bytes=$("$work/page") || wrong "the page's examples fire something else (exit $?)"
same "the bytes of SpoorGCLongWait" "$bytes" 01000700000080841e000000000077006f0072006b0065007200000003000000000000000000""01000000

# The list, one entry a line: "SpoorX VERSION LEVEL fields...".
tr '\n' ' ' <"$top/gc/gc_events.def" | sed 's|/\*|\n/*|g; s|\*/|*/\n|g' | grep -v '^/\*' | sed 's/GC_DYNAMIC(\([A-Za-z]*, [0-9]\)/\n@\1/g; s/GC_KNOWN(/\n/g' | sed -n 's/^@//p' >"$work/entries"
at_least "entries of the list" "$(wc -l <"$work/entries")" 5
while IFS= read -r entry; do
	name=${entry%%,*}
	version=$(echo "$entry" | sed 's/^[^,]*, \([0-9]*\),.*/\1/')
	level=$(echo "$entry" | sed 's/^[^,]*, [0-9]*, \([0-9]*\),.*/\1/')
	awk -v title="### $name" '$0 == title { on = 1; next } /^#/ { on = 0 } on' "$page" >"$work/section"
	[ -s "$work/section" ] || {
		wrong "docs/gc-events.md has no section $name"
		continue
	}
	grep -q "^Version $version, level $level, by " "$work/section" || wrong "$name: the page does not say version $version, level $level"
	for field in $(echo "$entry" | sed 's/^[^"]*"[^"]*"//' | grep -oE '\([a-z0-9]+, *[A-Za-z0-9]+\)' | sed 's/.*, *//; s/)//'); do
		grep -qE "^\| ([A-Za-z0-9]+, )*$field(, [A-Za-z0-9]+)* \|" "$work/section" || wrong "$name: the page has no row for $field"
	done
done <"$work/entries"
for name in $(sed -n 's/^### //p' "$page"); do
	grep -q "^$name," "$work/entries" || wrong "docs/gc-events.md has a section $name, the list no such event"
done
end
