/*
 * Copies of a nettrace file with other symbols. If the file reads without an error, so do the
 * copies, with the same other events, and as many symbols more as were added.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/input.h"
#include "base/map.h"
#include "nettrace/nettrace_edit.h"
#include "nettrace/nettrace_read.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct copy {
	struct bytes out;
	unsigned wanted; /* further symbols */
	bool changes;
};

static bool change(void *context, struct payload_symbol *symbol)
{
	const struct copy *copy = context;

	symbol->name = "a_name_that_is_longer_than_sub_1000";
	symbol->name_len = strlen(symbol->name);
	return copy->changes;
}

static bool next(void *context, struct payload_symbol *ret_symbol)
{
	struct copy *copy = context;

	*ret_symbol = (struct payload_symbol){
		.mapping_id = 7, .begin = 0x1000, .end = 0x1010, .name = "more", .name_len = 4
	};
	return copy->wanted && copy->wanted--;
}

static int write_piece(void *context, const uint8_t *data, size_t size)
{
	struct copy *copy = context;

	bytes_add(&copy->out, data, size);
	return copy->out.failed ? -12 : 0;
}

static int edit(const uint8_t *data, size_t size, struct copy *copy)
{
	const struct nettrace_edit how = {
		.change = change, .next = next, .write = write_piece, .context = copy
	};
	struct input in;

	input_from_memory(&in, data, size);
	int result = nettrace_edit(&in, &how, NULL);
	input_close(&in);
	bytes_u32(&copy->out, 0); /* the end mark */
	return result;
}

/* The error of reading; *ret_hash is of all events that are not symbols, *ret_count of the symbols. */
static int read_events(const uint8_t *data, size_t size, uint64_t *ret_hash, uint64_t *ret_count)
{
	struct nettrace_decoder *decoder;
	struct trace trace;
	struct event event;
	int r;

	if (trace_init(&trace) < 0 || !(decoder = nettrace_decoder_new(&trace, "fuzz", 0)))
		abort();
	if (nettrace_decoder_push(decoder, data, size) < 0)
		abort();
	*ret_hash = *ret_count = 0;
	while ((r = nettrace_decoder_next(decoder, &event, NULL)) > 0) {
		const struct schema *schema = &trace.schemas.items[event.schema_index];
		if (schema->provider_kind == PROVIDER_UNIVERSAL_SYSTEM &&
			schema->event_id == ID_SYSTEM_PROCESS_SYMBOL) {
			(*ret_count)++;
			continue;
		}
		*ret_hash = hash_u64(*ret_hash ^ event.time_ns) +
			    hash_bytes(event.payload, event.payload_size) + event.thread_index;
	}
	if (r == 0)
		r = nettrace_decoder_finish(decoder, NULL);
	nettrace_decoder_free(decoder);
	trace_done(&trace);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct copy same = { 0 };
	struct copy other = { .changes = true, .wanted = 3 };
	uint64_t hash;
	uint64_t other_hash;
	uint64_t count;
	uint64_t other_count;
	bool whole = read_events(data, size, &hash, &count) == 0;
	int result = edit(data, size, &same);

	if (edit(data, size, &other) != result)
		abort();
	if (result == 0 && whole &&
		(read_events(same.out.data, same.out.len, &other_hash, &other_count) < 0 ||
			other_hash != hash || other_count != count))
		abort();
	if (result == 0 && whole &&
		(read_events(other.out.data, other.out.len, &other_hash, &other_count) < 0 ||
			other_hash != hash || other_count != count + 3))
		abort();
	bytes_done(&same.out);
	bytes_done(&other.out);
	return 0;
}
