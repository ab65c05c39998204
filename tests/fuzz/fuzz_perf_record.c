/*
 * The content of a perf ring. The first two bytes select the layout; then come records, each as
 * long as its header announces or as bytes remain.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "perf/perf_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t bits[] = { PERF_BIT_IP, PERF_BIT_TID, PERF_BIT_TIME, PERF_BIT_ADDR,
	PERF_BIT_CALLCHAIN, PERF_BIT_ID, PERF_BIT_CPU, PERF_BIT_PERIOD, PERF_BIT_STREAM_ID,
	PERF_BIT_IDENTIFIER, PERF_BIT_USER_REGISTERS, PERF_BIT_USER_STACK, PERF_BIT_RAW };

#define USER_REGISTERS 5u

/* All borrowed data of a record must be inside the record. */
static void check_inside(const uint8_t *data, size_t size, const void *part, size_t part_size)
{
	const uint8_t *p = part;

	if (p && (p < data || part_size > size || p > data + size - part_size))
		abort();
}

static void run_record(const struct perf_layout *layout, const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);
	struct perf_record record;
	uint64_t frames[64];

	if (!exact)
		return;
	memcpy(exact, data, size);
	if (perf_record_decode(layout, exact, size, &record) == 0) {
		check_inside(exact, size, record.text, record.text_len + 1u);
		check_inside(exact, size, record.build_id, record.build_id_size);
		check_inside(exact, size, record.callchain, record.callchain_count * 8u);
		check_inside(exact, size, record.user_registers, 16);
		check_inside(exact, size, record.user_stack, record.user_stack_size);
		check_inside(exact, size, record.raw, record.raw_size);
		struct perf_callchain chain =
			perf_callchain_flatten(&record, 1ull << 63, 127, frames, 64);
		if (chain.count > 64 || chain.kernel_count > chain.count)
			abort();
		for (uint32_t i = 0; i < chain.count; i++)
			if ((frames[i] >> 63) != (i < chain.kernel_count))
				abort();
	}
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_layout layout = { .user_registers = USER_REGISTERS };

	if (size < 2)
		return 0;
	layout.sample_id_all = data[1] & 0x80;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if ((data[0] | data[1] << 8) >> i & 1)
			layout.sample_type |= bits[i];
	data += 2;
	size -= 2;
	while (size >= PERF_RECORD_HEADER_SIZE) {
		uint16_t stated;
		memcpy(&stated, data + 6, 2);
		size_t step = stated < PERF_RECORD_HEADER_SIZE || stated > size ? size : stated;
		run_record(&layout, data, step);
		data += step;
		size -= step;
	}
	return 0;
}
