/*
 * A file as `spoor events` reads it: each event is printed once, whether the file is read to its
 * end or not.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/input.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/saved_stream.h"
#include "render/event_line.h"
#include "trace/event.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
	struct trace trace;
	struct bytes line;
	uint64_t count;
	uint64_t most;
};

static int on_event(void *context, const struct event *event, uint32_t code_epoch)
{
	struct reading *reading = context;
	uint32_t count;

	(void)code_epoch;
	(void)stack_table_get(&reading->trace.stacks, event->stack_index, &count);

	bytes_reset(&reading->line);
	event_line(&reading->line, &reading->trace, event, 0);
	event_line_json(&reading->line, &reading->trace, event, 0, NULL);
	return ++reading->count == reading->most ? -ECANCELED : 0;
}

static uint64_t read_events(const uint8_t *data, size_t size, enum saved_stream_stacks stacks,
	uint64_t most)
{
	struct reading reading = { .most = most };
	struct diag diag = { 0 };
	struct input in;
	uint64_t lost;

	if (trace_init(&reading.trace) < 0)
		abort();
	input_from_memory(&in, data, size);
	int r = saved_stream_input(&in, &reading.trace, stacks, on_event, &reading, &lost, &diag);
	if (r < 0 && r != -ECANCELED && !diag.text[0])
		abort();
	bytes_done(&reading.line);
	trace_done(&reading.trace);
	return reading.count;
}

static uint64_t decode(const uint8_t *data, size_t size)
{
	struct trace trace;
	struct event event;
	uint64_t count = 0;

	if (trace_init(&trace) < 0)
		abort();
	struct nettrace_decoder *decoder = nettrace_decoder_new(&trace, "fuzz", NETTRACE_NO_STACKS);
	if (!decoder || nettrace_decoder_push(decoder, data, size) < 0)
		abort();
	while (nettrace_decoder_next(decoder, &event, NULL) > 0)
		count++;
	nettrace_decoder_free(decoder);
	trace_done(&trace);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t packed[] = { 0x28, 0xb5, 0x2f, 0xfd };
	uint64_t count = read_events(data, size, SAVED_STREAM_NO_STACKS, 0);

	if (size < sizeof(packed) || memcmp(data, packed, sizeof(packed)) != 0) {
		if (count != decode(data, size))
			abort();
	}
	if (count > 1 && read_events(data, size, SAVED_STREAM_NO_STACKS, count / 2) != count / 2)
		abort();
	/* Stacks can also be broken. */
	if (read_events(data, size, SAVED_STREAM_STACKS, 0) > count)
		abort();
	return 0;
}
