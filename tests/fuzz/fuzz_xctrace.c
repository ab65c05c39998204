/* An export of xctrace, with the names that the reader puts into the trace's tables. */
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/input.h"
#include "formats/xctrace_read.h"
#include "trace/event.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolmap map = { 0 };
	struct source *source;
	struct diag diag = { 0 };
	struct trace trace;
	struct event event;
	struct input in;

	if (trace_init(&trace) < 0)
		return 0;
	input_from_memory(&in, data, size);
	if (xctrace_source_open(&in, &trace, &source, &diag) == 0) {
		while (xctrace_source.next(source, &event, &diag) > 0)
			;
		xctrace_source.close(source);
		if (symbolmap_init(&map, &trace, METHOD_NAME_LONG) == 0)
			for (uint32_t stack = 1; stack < trace.stacks.stacks.count; stack++) {
				uint32_t count;
				const uint64_t *frames =
					stack_table_get(&trace.stacks, stack, &count);
				for (uint32_t i = 0; i < count; i++)
					(void)symbolmap_find(&map, 1, frames[i], 0);
			}
		symbolmap_done(&map);
	}
	trace_done(&trace);
	return 0;
}
