/* perf_record.c: the kernel's record layouts, and every way in which a record may be broken. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "perf/perf_record.h"

#define KERNEL_BEGIN (1ull << 63)
#define MARK_KERNEL  ((uint64_t)-128)
#define MARK_USER    ((uint64_t)-512)

static const struct perf_layout machine_layout = {
	.sample_type = PERF_BIT_TID | PERF_BIT_TIME | PERF_BIT_CPU | PERF_BIT_CALLCHAIN,
	.sample_id_all = true,
};

static void begin_record(struct bytes *b, uint32_t type, uint16_t misc)
{
	bytes_reset(b);
	bytes_u32(b, type);
	bytes_u16(b, misc);
	bytes_u16(b, 0);
}

static void add_trailer(struct bytes *b)
{
	bytes_u32(b, 100);
	bytes_u32(b, 101);
	bytes_u64(b, 5000);
	bytes_u32(b, 3);
	bytes_u32(b, 0);
}

static int decode(struct bytes *b, const struct perf_layout *layout, struct perf_record *record)
{
	bytes_set_u16(b, 6, (uint16_t)b->len);
	return perf_record_decode(layout, b->data, b->len, record);
}

/*
 * Every shorter record, whose header has its real size, is refused, or read without going beyond
 * its end (the sanitizers check this).
 */
static void cut_everywhere(const struct bytes *b, const struct perf_layout *layout)
{
	for (size_t size = 0; size < b->len; size++) {
		struct perf_record record;
		uint8_t *cut = malloc(size ? size : 1);
		assert_non_null(cut);
		memcpy(cut, b->data, size);
		if (size >= 8) {
			uint16_t stated = (uint16_t)size;
			memcpy(cut + 6, &stated, 2);
		}
		int r = perf_record_decode(layout, cut, size, &record);
		assert_true(r == 0 || r == -EBADMSG);
		if (size < PERF_RECORD_HEADER_SIZE)
			assert_int_equal(r, -EBADMSG);
		free(cut);
	}
}

static void test_sample(void **state)
{
	static const uint64_t chain[] = { MARK_KERNEL, KERNEL_BEGIN + 0x10, KERNEL_BEGIN + 0x20,
		MARK_USER, 0x401000, 0x402000 };
	struct bytes b = { 0 };
	struct perf_record record;
	uint64_t frames[8];

	(void)state;
	begin_record(&b, PERF_TYPE_SAMPLE, PERF_MISC_KERNEL);
	bytes_u32(&b, 100);
	bytes_u32(&b, 101);
	bytes_u64(&b, 5000);
	bytes_u32(&b, 3);
	bytes_u32(&b, 0);
	bytes_u64(&b, 6);
	for (size_t i = 0; i < 6; i++)
		bytes_u64(&b, chain[i]);
	assert_int_equal(decode(&b, &machine_layout, &record), 0);
	assert_int_equal(record.pid, 100);
	assert_int_equal(record.tid, 101);
	assert_int_equal(record.time_ns, 5000);
	assert_int_equal(record.cpu, 3);
	assert_int_equal(record.callchain_count, 6);
	struct perf_callchain flat = perf_callchain_flatten(&record, KERNEL_BEGIN, 127, frames, 8);
	assert_int_equal(flat.count, 4);
	assert_int_equal(flat.kernel_count, 2);
	assert_int_equal(flat.flags, 0);
	assert_int_equal(frames[0], KERNEL_BEGIN + 0x10);
	assert_int_equal(frames[3], 0x402000);

	/* A stack at the kernel's limit, and with too little room. */
	assert_int_equal(perf_callchain_flatten(&record, KERNEL_BEGIN, 4, frames, 8).flags,
		PERF_CHAIN_CUT);
	flat = perf_callchain_flatten(&record, KERNEL_BEGIN, 127, frames, 3);
	assert_int_equal(flat.count, 3);
	assert_int_equal(flat.flags, PERF_CHAIN_CUT);
	for (size_t size = 8; size < b.len; size += 8) {
		bytes_set_u16(&b, 6, (uint16_t)size);
		assert_int_equal(perf_record_decode(&machine_layout, b.data, size, &record),
			-EBADMSG);
	}
	cut_everywhere(&b, &machine_layout);
	bytes_done(&b);
}

static struct perf_callchain flatten(const uint64_t *chain, uint32_t count, uint16_t misc,
	uint64_t *frames)
{
	struct perf_record record = {
		.misc = misc, .callchain = (const uint8_t *)chain, .callchain_count = count
	};

	return perf_callchain_flatten(&record, KERNEL_BEGIN, 127, frames, 16);
}

static void test_chain_garbage(void **state)
{
	uint64_t frames[16];
	const uint64_t garbage[] = { MARK_USER, 0x401000, 0x12, 0x402000 };
	const uint64_t high[] = { MARK_USER, 0x401000, KERNEL_BEGIN + 1, 0x402000 };
	const uint64_t kernel_low[] = { MARK_KERNEL, KERNEL_BEGIN + 1, 0x5000, MARK_USER,
		0x401000 };
	const uint64_t unmarked[] = { 0x401000, 0x402000 };
	const uint64_t twice[] = { MARK_USER, 0x401000, MARK_KERNEL, KERNEL_BEGIN + 1 };

	(void)state;
	struct perf_callchain flat = flatten(garbage, 4, PERF_MISC_USER, frames);
	assert_int_equal(flat.count, 1);
	assert_int_equal(flat.flags, PERF_CHAIN_BROKEN);
	flat = flatten(high, 4, PERF_MISC_USER, frames);
	assert_int_equal(flat.count, 1);
	assert_int_equal(flat.kernel_count, 0);
	assert_int_equal(flat.flags, PERF_CHAIN_BROKEN);
	flat = flatten(kernel_low, 5, PERF_MISC_KERNEL, frames);
	assert_int_equal(flat.count, 2);
	assert_int_equal(flat.kernel_count, 1);
	assert_int_equal(frames[1], 0x401000);
	flat = flatten(unmarked, 2, PERF_MISC_USER, frames);
	assert_int_equal(flat.count, 2);
	flat = flatten(unmarked, 2, 0, frames);
	assert_int_equal(flat.count, 0);
	flat = flatten(twice, 4, 0, frames);
	assert_int_equal(flat.count, 1);
	assert_int_equal(flat.kernel_count, 0);
	assert_int_equal(flat.flags, PERF_CHAIN_BROKEN);
}

/* User registers and the copy of a stack, of which 8 of 16 bytes are valid. */
static void test_user_stack(void **state)
{
	static const struct perf_layout layout = {
		.sample_type = PERF_BIT_TID | PERF_BIT_CALLCHAIN | PERF_BIT_USER_REGISTERS |
			       PERF_BIT_USER_STACK,
		.user_registers = 5,
	};
	struct bytes b = { 0 };
	struct perf_record record;

	(void)state;
	begin_record(&b, PERF_TYPE_SAMPLE, PERF_MISC_USER);
	bytes_u32(&b, 100);
	bytes_u32(&b, 101);
	bytes_u64(&b, 0);
	bytes_u64(&b, 2); /* a program of 64 bits */
	bytes_u64(&b, 0x11);
	bytes_u64(&b, 0x22);
	bytes_u64(&b, 16);
	bytes_u64(&b, 0x33);
	bytes_u64(&b, 0x44);
	bytes_u64(&b, 8);
	assert_int_equal(decode(&b, &layout, &record), 0);
	assert_true(record.user_is_64);
	assert_int_equal(record.user_registers[8], 0x22);
	assert_int_equal(record.user_stack[0], 0x33);
	assert_int_equal(record.user_stack_size, 8);
	cut_everywhere(&b, &layout);

	/* a thread of the kernel has neither */
	begin_record(&b, PERF_TYPE_SAMPLE, PERF_MISC_KERNEL);
	bytes_u64(&b, 0);
	bytes_u64(&b, 0);
	bytes_u64(&b, 0);
	bytes_u64(&b, 0);
	assert_int_equal(decode(&b, &layout, &record), 0);
	assert_null(record.user_registers);
	assert_null(record.user_stack);
	assert_int_equal(record.user_stack_size, 0);
	bytes_done(&b);
}

/* An event without registers in a ring whose samples have some: it has one, and an empty stack. */
static void test_few_registers(void **state)
{
	static const struct perf_layout layout = {
		.sample_type = PERF_BIT_TID | PERF_BIT_USER_REGISTERS | PERF_BIT_USER_STACK,
		.user_registers = 7,
	};
	struct bytes b = { 0 };
	struct perf_record record;

	(void)state;
	begin_record(&b, PERF_TYPE_SAMPLE, PERF_MISC_USER);
	bytes_u32(&b, 100);
	bytes_u32(&b, 101);
	bytes_u64(&b, 2);
	bytes_u64(&b, 0x11);
	bytes_u64(&b, 0);
	assert_int_equal(decode(&b, &layout, &record), 0);
	assert_int_equal(record.tid, 101);
	assert_null(record.user_registers);
	assert_int_equal(record.user_stack_size, 0);
	cut_everywhere(&b, &layout);
	bytes_done(&b);
}

static void begin_mapping(struct bytes *b, uint16_t misc)
{
	begin_record(b, PERF_TYPE_MMAP2, misc);
	bytes_u32(b, 100);
	bytes_u32(b, 101);
	bytes_u64(b, 0x7f0000001000);
	bytes_u64(b, 0x2000);
	bytes_u64(b, 0x3000);
}

static void end_mapping(struct bytes *b)
{
	bytes_u32(b, PERF_PROT_EXEC | 1);
	bytes_u32(b, 2);
	bytes_add(b, "/lib/a b\n.so\0\0\0\0", 16);
	add_trailer(b);
}

static void test_mapping(void **state)
{
	struct bytes b = { 0 };
	struct perf_record record;

	(void)state;
	begin_mapping(&b, PERF_MISC_USER);
	bytes_u32(&b, 254);
	bytes_u32(&b, 1);
	bytes_u64(&b, 1234);
	bytes_u64(&b, 0);
	end_mapping(&b);
	assert_int_equal(decode(&b, &machine_layout, &record), 0);
	assert_int_equal(record.address, 0x7f0000001000);
	assert_int_equal(record.length, 0x2000);
	assert_int_equal(record.file_offset, 0x3000);
	assert_int_equal(record.device_major, 254);
	assert_int_equal(record.inode, 1234);
	assert_int_equal(record.protection, PERF_PROT_EXEC | 1);
	assert_int_equal(record.build_id_size, 0);
	assert_int_equal(record.text_len, 12);
	assert_memory_equal(record.text, "/lib/a b\n.so", 12);
	assert_int_equal(record.time_ns, 5000);
	assert_int_equal(record.cpu, 3);
	cut_everywhere(&b, &machine_layout);

	begin_mapping(&b, PERF_MISC_USER | PERF_MISC_MMAP_BUILD_ID);
	bytes_u32(&b, 20);
	bytes_add(&b, "01234567890123456789", 20);
	end_mapping(&b);
	assert_int_equal(decode(&b, &machine_layout, &record), 0);
	assert_int_equal(record.build_id_size, 20);
	assert_memory_equal(record.build_id, "01234567890123456789", 20);
	assert_int_equal(record.inode, 0);
	b.data[40] = 21;
	assert_int_equal(decode(&b, &machine_layout, &record), -EBADMSG);
	bytes_done(&b);
}

static void test_small_records(void **state)
{
	struct bytes b = { 0 };
	struct perf_record record;

	(void)state;
	begin_record(&b, PERF_TYPE_COMM, PERF_MISC_COMM_EXEC);
	bytes_u32(&b, 100);
	bytes_u32(&b, 101);
	bytes_add(&b, "dotnet\0\0", 8);
	add_trailer(&b);
	assert_int_equal(decode(&b, &machine_layout, &record), 0);
	assert_true(record.exec);
	assert_int_equal(record.text_len, 6);
	cut_everywhere(&b, &machine_layout);

	begin_record(&b, PERF_TYPE_FORK, 0);
	bytes_u32(&b, 200);
	bytes_u32(&b, 100);
	bytes_u32(&b, 201);
	bytes_u32(&b, 101);
	bytes_u64(&b, 4999);
	add_trailer(&b);
	assert_int_equal(decode(&b, &machine_layout, &record), 0);
	assert_int_equal(record.pid, 200);
	assert_int_equal(record.parent_pid, 100);
	assert_int_equal(record.tid, 201);
	assert_int_equal(record.parent_tid, 101);
	assert_int_equal(record.time_ns, 4999);
	assert_int_equal(record.cpu, 3);
	cut_everywhere(&b, &machine_layout);

	begin_record(&b, PERF_TYPE_LOST, 0);
	bytes_u64(&b, 7);
	bytes_u64(&b, 33);
	add_trailer(&b);
	assert_int_equal(decode(&b, &machine_layout, &record), 0);
	assert_int_equal(record.lost, 33);
	assert_int_equal(record.pid, 100);
	cut_everywhere(&b, &machine_layout);

	begin_record(&b, PERF_TYPE_SWITCH_CPU_WIDE, PERF_MISC_SWITCH_OUT);
	bytes_u32(&b, 8);
	bytes_u32(&b, 9);
	add_trailer(&b);
	assert_int_equal(decode(&b, &machine_layout, &record), 0);
	assert_true(record.switch_out);
	assert_int_equal(record.parent_tid, 9);
	assert_int_equal(record.tid, 101);

	/* A record of an unknown type has a time and a thread only. */
	begin_record(&b, 999, 0);
	bytes_u64(&b, 1);
	add_trailer(&b);
	assert_int_equal(decode(&b, &machine_layout, &record), 0);
	assert_int_equal(record.type, 999);
	assert_int_equal(record.time_ns, 5000);

	/* A size that differs from the header's. */
	bytes_set_u16(&b, 6, 8);
	assert_int_equal(perf_record_decode(&machine_layout, b.data, b.len, &record), -EBADMSG);
	bytes_done(&b);
}

/* With IDENTIFIER and PERIOD, and with fields that are skipped. */
static void test_layouts(void **state)
{
	struct perf_layout layout = { .sample_type = PERF_BIT_IDENTIFIER | PERF_BIT_IP |
						     PERF_BIT_TID | PERF_BIT_TIME | PERF_BIT_ADDR |
						     PERF_BIT_ID | PERF_BIT_STREAM_ID |
						     PERF_BIT_CPU | PERF_BIT_PERIOD |
						     PERF_BIT_CALLCHAIN };
	struct bytes b = { 0 };
	struct perf_record record;

	(void)state;
	begin_record(&b, PERF_TYPE_SAMPLE, PERF_MISC_USER);
	for (uint64_t i = 1; i <= 2; i++)
		bytes_u64(&b, i);
	bytes_u32(&b, 100);
	bytes_u32(&b, 101);
	for (uint64_t i = 4; i <= 7; i++)
		bytes_u64(&b, i);
	bytes_u32(&b, 8);
	bytes_u32(&b, 0);
	bytes_u64(&b, 9);
	bytes_u64(&b, 0);
	assert_int_equal(decode(&b, &layout, &record), 0);
	assert_int_equal(record.identifier, 1);
	assert_int_equal(record.ip, 2);
	assert_int_equal(record.tid, 101);
	assert_int_equal(record.time_ns, 4);
	assert_int_equal(record.cpu, 8);
	assert_int_equal(record.period, 9);
	assert_int_equal(record.callchain_count, 0);
	layout.sample_type |= 1u << 11; /* BRANCH_STACK */
	assert_false(perf_layout_known(&layout));
	assert_int_equal(decode(&b, &layout, &record), -EBADMSG);
	bytes_done(&b);
}

/* The fields of a tracepoint after the callchain. */
static void test_raw(void **state)
{
	const struct perf_layout layout = { .sample_type = PERF_BIT_TID | PERF_BIT_CALLCHAIN |
							   PERF_BIT_RAW };
	struct bytes b = { 0 };
	struct perf_record record;

	(void)state;
	begin_record(&b, PERF_TYPE_SAMPLE, PERF_MISC_KERNEL);
	bytes_u32(&b, 100);
	bytes_u32(&b, 101);
	bytes_u64(&b, 1);
	bytes_u64(&b, KERNEL_BEGIN);
	bytes_u32(&b, 12);
	bytes_u32(&b, 318);
	bytes_u64(&b, 77);
	assert_int_equal(decode(&b, &layout, &record), 0);
	assert_int_equal(record.callchain_count, 1);
	assert_int_equal(record.raw_size, 12);
	assert_int_equal(record.raw[0] | record.raw[1] << 8, 318);
	bytes_set_u16(&b, 32, 13); /* more than the record has */
	assert_int_equal(decode(&b, &layout, &record), -EBADMSG);
	cut_everywhere(&b, &layout);
	bytes_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_chain_garbage),
		cmocka_unit_test(test_user_stack),
		cmocka_unit_test(test_few_registers),
		cmocka_unit_test(test_mapping),
		cmocka_unit_test(test_small_records),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_raw),
	};

	return cmocka_run_group_tests_name("perf_record", tests, NULL, NULL);
}
