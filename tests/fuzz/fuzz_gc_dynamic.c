/* The payload of a GCDynamicEvent; then the same data as each of Spoor's dynamic events. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "unit/gc_dynamic_line.h"
#include "trace/gc_dynamic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes line = { 0 };
	struct gc_dynamic event;

	if (gc_dynamic_open(data, size, &event) == 0) {
		(void)gc_dynamic_line(&event, &line);
		if (event.size > size || event.rest > event.size)
			abort();
	}
	for (size_t i = 0; i < gc_dynamic_event_count; i++) {
		const char *name = gc_dynamic_events[i].name;
		bytes_reset(&line);
		gc_dynamic_open_named(name, strlen(name), data, size, &event);
		(void)gc_dynamic_line(&event, &line);
	}
	bytes_done(&line);
	return 0;
}
