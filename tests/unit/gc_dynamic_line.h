/* One line of text for a dynamic event: "SpoorGCPause Collection=3 Generation=0 ...". */
#ifndef SPOOR_TESTS_GC_DYNAMIC_LINE_H
#define SPOOR_TESTS_GC_DYNAMIC_LINE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/text.h"
#include "trace/gc_dynamic.h"

/* False: the payload ended too early. */
static inline bool gc_dynamic_line(struct gc_dynamic *event, struct bytes *out)
{
	struct gc_dynamic_field field;
	int r;

	text_add_safe_z(out, event->name);
	while ((r = gc_dynamic_next(event, &field)) > 0) {
		bytes_printf(out, " %.*s=", (int)field.name_len, field.name);
		gc_dynamic_value(&field, out);
	}
	if (r == 0 && event->rest)
		bytes_printf(out, " (%zu more byte%s)", event->rest, event->rest == 1 ? "" : "s");
	return r == 0;
}

#endif
