/* See nettrace_head_write.h. */
#include "nettrace/nettrace_head_write.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "base/bytes.h"
#include "nettrace/nettrace_block.h"
#include "trace/trace.h"

static void put_key_number(struct bytes *out, const char *key, uint64_t value)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)value);

	block_z(out, key);
	block_string(out, text, (size_t)len);
}

static void put_utc(struct bytes *out, uint64_t utc_ns)
{
	time_t seconds = (time_t)(utc_ns / 1000000000u);
	struct tm tm = { 0 };

	if (!gmtime_r(&seconds, &tm))
		tm = (struct tm){ .tm_year = 70, .tm_mday = 1, .tm_wday = 4 };
	bytes_u16(out, (uint16_t)(tm.tm_year + 1900));
	bytes_u16(out, (uint16_t)(tm.tm_mon + 1));
	bytes_u16(out, (uint16_t)tm.tm_wday);
	bytes_u16(out, (uint16_t)tm.tm_mday);
	bytes_u16(out, (uint16_t)tm.tm_hour);
	bytes_u16(out, (uint16_t)tm.tm_min);
	bytes_u16(out, (uint16_t)tm.tm_sec);
	bytes_u16(out, (uint16_t)(utc_ns / 1000000u % 1000u));
}

void nettrace_head_put(struct bytes *out, const struct trace *trace,
	const struct nettrace_key *keys, size_t key_count)
{
	const struct recording *recording = &trace->recording;
	uint32_t pid = trace->processes.items[recording->recorder_process].pid;

	bytes_add(out, "Nettrace", 8);
	bytes_u32(out, 0);
	bytes_u32(out, 6);
	bytes_u32(out, 0);
	size_t block = block_begin(out);
	put_utc(out, recording->utc_ns);
	bytes_u64(out, recording->sync_ns);
	bytes_u64(out, 1000000000);
	bytes_u32(out, 8);
	bytes_u32(out, (uint32_t)(6 + key_count));
	/* The stock reader sizes an array by it and indexes that with the CPU. */
	put_key_number(out, KEY_CPU_COUNT, recording->cpu_possible ? recording->cpu_possible : 1);
	put_key_number(out, KEY_PAGE_SIZE,
		recording->page_size_bytes ? recording->page_size_bytes : 4096);
	put_key_number(out, KEY_PROCESS_ID, pid);
	put_key_number(out, KEY_PERIOD, recording->period_ns);
	for (size_t i = 0; i < key_count; i++) {
		block_z(out, keys[i].key);
		block_z(out, keys[i].value);
	}
	/* With this key, a second row of a main thread is a reused pid to our reader. */
	block_z(out, KEY_WRITER);
	block_z(out, KEY_WRITER_OURS);
	/* Fills the head up to a multiple of 4: see nettrace_file.c. */
	block_z(out, KEY_PADDING);
	block_string(out, "...", 3 - (out->len & 3));
	(void)block_end(out, block, BLOCK_TRACE);
	assert(out->failed || out->len % 4 == 0);
}
