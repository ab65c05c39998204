/*
 * Payloads of Spoor's own events in a foreign file. The first byte selects the event. A payload
 * that can be read is written and read again; the bytes must not change after that.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/strtab.h"
#include "trace/line_table.h"
#include "trace/spoor_payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PERIOD_NS 1000003u

/* Reads a payload and appends its values as a new payload. False: it cannot be read. */
typedef bool again_fn(const uint8_t *data, size_t size, struct strtab *strings, struct bytes *out);

#define AGAIN(kind)                                                                        \
	static bool again_##kind(const uint8_t *data, size_t size, struct strtab *strings, \
		struct bytes *out)                                                         \
	{                                                                                  \
		struct payload_##kind value;                                               \
		if (payload_read_##kind(data, size, strings, &value) < 0)                  \
			return false;                                                      \
		(void)payload_##kind(out, &value); /* the writer may cut a text */         \
		return true;                                                               \
	}

AGAIN(process)
AGAIN(mapping)
AGAIN(mapping_metadata)
AGAIN(symbol)
AGAIN(session)
AGAIN(clock_offset)
AGAIN(cpu_limit)
AGAIN(event_count)
AGAIN(machine)
AGAIN(loss)
AGAIN(notice)
AGAIN(runtime)
AGAIN(thread_name)
AGAIN(process_info)
AGAIN(code_added)
AGAIN(code_removed)
AGAIN(thread_clock)
AGAIN(process_end)
AGAIN(wakeup)
AGAIN(short_blocks)
AGAIN(thread_time)
AGAIN(process_use)
AGAIN(other_children)
AGAIN(stack_look)
AGAIN(look_thread)
AGAIN(io_calls)

static bool again_session_end(const uint8_t *data, size_t size, struct strtab *strings,
	struct bytes *out)
{
	struct payload_count counts[PAYLOAD_COUNTS_MAX];
	struct payload_session_end end;

	if (payload_read_session_end(data, size, strings, counts, &end) < 0)
		return false;
	(void)payload_session_end(out, &end); /* the writer may cut a text */
	return true;
}

static bool again_process_facts(const uint8_t *data, size_t size, struct strtab *strings,
	struct bytes *out)
{
	const char *arguments[PAYLOAD_ARGUMENTS_MAX];
	struct payload_process_facts facts;

	if (payload_read_process_facts(data, size, strings, arguments, &facts) < 0)
		return false;
	(void)payload_process_facts(out, &facts); /* the writer may cut a text */
	return true;
}

static bool again_look_stack(const uint8_t *data, size_t size, struct strtab *strings,
	struct bytes *out)
{
	const char *frames[PAYLOAD_LOOK_FRAMES_MAX];
	struct payload_look_stack stack;

	if (payload_read_look_stack(data, size, strings, frames, &stack) < 0)
		return false;
	(void)payload_look_stack(out, &stack); /* the writer may cut a text */
	return true;
}

static bool again_numbers(const uint8_t *data, size_t size, struct strtab *strings,
	struct bytes *out)
{
	struct payload_cswitch change;
	struct payload_cpu sample;

	(void)strings;
	if (payload_read_cswitch(data, size, &change) == 0)
		payload_cswitch(out, &change);
	if (payload_read_cpu(data, size, PERIOD_NS, &sample) == 0)
		payload_cpu(out, &sample, PERIOD_NS);
	return false; /* several symbols in one payload are not read again */
}

static bool again_il_offsets(const uint8_t *data, size_t size, struct strtab *strings,
	struct bytes *out)
{
	uint32_t native[PAYLOAD_LINES_MAX];
	uint32_t il[PAYLOAD_LINES_MAX];
	struct payload_il_offsets offsets;

	if (payload_read_il_offsets(data, size, strings, native, il, &offsets) < 0)
		return false;
	(void)payload_il_offsets(out, &offsets); /* the writer may cut a text */
	return true;
}

/* Into a table, in which each entry must be found again. */
static bool again_source_lines(const uint8_t *data, size_t size, struct strtab *strings,
	struct bytes *out)
{
	struct line_table table = { 0 };
	uint32_t count;

	(void)out;
	(void)payload_read_source_lines(data, size, strings, &table); /* or it is malformed */
	for (uint32_t i = 0; i < table.entries.count; i++)
		if (!line_table_find(&table, &table.entries.items[i].place, &count) || !count)
			abort();
	line_table_done(&table);
	return false;
}

static bool again_code_bytes(const uint8_t *data, size_t size, struct strtab *strings,
	struct bytes *out)
{
	struct payload_code_bytes code;

	(void)strings;
	if (payload_read_code_bytes(data, size, &code) < 0)
		return false;
	payload_code_bytes(out, &code);
	return true;
}

static again_fn *const kinds[] = { again_process, again_mapping, again_mapping_metadata,
	again_symbol, again_session, again_clock_offset, again_cpu_limit, again_machine, again_loss,
	again_notice, again_runtime, again_thread_name, again_process_info, again_code_added,
	again_session_end, again_process_facts, again_numbers, again_code_removed,
	again_thread_clock, again_process_end, again_wakeup, again_short_blocks, again_thread_time,
	again_event_count, again_il_offsets, again_source_lines, again_code_bytes,
	again_process_use, again_stack_look, again_look_thread, again_look_stack,
	again_other_children, again_io_calls };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strtab strings = { 0 };
	struct bytes first = { 0 };
	struct bytes second = { 0 };

	if (!size)
		return 0;
	again_fn *again = kinds[data[0] % (sizeof(kinds) / sizeof(kinds[0]))];

	if (again(data + 1, size - 1, &strings, &first) && !first.failed) {
		if (!again(first.data, first.len, &strings, &second))
			abort();
		if (!second.failed &&
			(first.len != second.len ||
				(first.len && memcmp(first.data, second.data, first.len) != 0)))
			abort();
	}
	bytes_done(&first);
	bytes_done(&second);
	strtab_done(&strings);
	return 0;
}
