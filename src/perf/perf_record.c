/*
 * The layouts of perf_event_open(2). A sample's fields have a fixed order after the header; other
 * records have their own body, and with sample_id_all a trailer:
 *
 *   sample   IDENTIFIER? IP? TID? TIME? ADDR? ID? STREAM_ID? CPU? PERIOD? CALLCHAIN? RAW?
 *            REGS_USER? STACK_USER?
 *   trailer  TID? TIME? ID? STREAM_ID? CPU? IDENTIFIER?
 *
 * Each field takes 8 bytes (TID: pid and tid; CPU: cpu and 4 reserved), except for the callchain: a
 * count, and that many 64-bit words; RAW: a 32-bit size, and that many bytes; REGS_USER: the kind of
 * program, and unless that is 0 a word for each bit of sample_regs_user; STACK_USER: a size, and
 * unless that is 0 so many bytes and the number of those that are valid.
 */
#include "perf/perf_record.h"

#include <errno.h>
#include <string.h>

#define FIELD 8u

/* PERF_CONTEXT_*: the kernel marks the begin of each part of a callchain. */
#define CONTEXT_MAX          ((uint64_t)-4095) /* this value and higher ones are markers */
#define CONTEXT_HV           ((uint64_t)-32)
#define CONTEXT_KERNEL       ((uint64_t)-128)
#define CONTEXT_USER         ((uint64_t)-512)
#define CONTEXT_GUEST        ((uint64_t)-2048)
#define CONTEXT_GUEST_KERNEL ((uint64_t)-2176)
#define CONTEXT_GUEST_USER   ((uint64_t)-2560)

#define FIRST_CODE_ADDRESS 4096u /* the first page is never mapped */

#define KNOWN_BITS                                                                      \
	((uint64_t)(PERF_BIT_IP | PERF_BIT_TID | PERF_BIT_TIME | PERF_BIT_ADDR |        \
		    PERF_BIT_CALLCHAIN | PERF_BIT_ID | PERF_BIT_CPU | PERF_BIT_PERIOD | \
		    PERF_BIT_STREAM_ID | PERF_BIT_RAW | PERF_BIT_USER_REGISTERS |       \
		    PERF_BIT_USER_STACK | PERF_BIT_IDENTIFIER))

/* a register, and the size of a stack that is empty */
#define FEW_BYTES (2 * FIELD)

#define USER_ABI_64 2u /* PERF_SAMPLE_REGS_ABI_64 */

static inline uint64_t word(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint32_t half(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

bool perf_layout_known(const struct perf_layout *layout)
{
	return !(layout->sample_type & ~KNOWN_BITS);
}

/* The fields that sample and trailer share, in their order. The caller reads IDENTIFIER. */
static inline const uint8_t *read_thread_time(uint64_t type, const uint8_t *at,
	struct perf_record *record)
{
	if (type & PERF_BIT_TID) {
		record->pid = half(at);
		record->tid = half(at + 4);
		at += FIELD;
	}
	if (type & PERF_BIT_TIME) {
		record->time_ns = word(at);
		record->has_time = true;
		at += FIELD;
	}
	return at;
}

static unsigned field_count(uint64_t bits)
{
	return (unsigned)__builtin_popcountll(bits);
}

static int decode_user(const struct perf_layout *layout, const uint8_t *at, const uint8_t *end,
	struct perf_record *record)
{
	if (layout->sample_type & PERF_BIT_USER_REGISTERS) {
		size_t size = field_count(layout->user_registers) * FIELD;
		if ((size_t)(end - at) < FIELD)
			return -EBADMSG;
		uint64_t abi = word(at);
		at += FIELD;
		/* See attribute_drop_registers(): only one register, and no stack. */
		bool few = abi && (size_t)(end - at) == FEW_BYTES && size > FEW_BYTES;
		if (abi && !few && (size_t)(end - at) < size)
			return -EBADMSG;
		record->user_registers = abi && !few ? at : NULL;
		record->user_is_64 = abi == USER_ABI_64;
		at += few ? FIELD : abi ? size : 0;
	}
	if (layout->sample_type & PERF_BIT_USER_STACK) {
		if ((size_t)(end - at) < FIELD)
			return -EBADMSG;
		uint64_t size = word(at);
		at += FIELD;
		if (!size)
			return 0;
		if (size > (size_t)(end - at) || (size_t)(end - at) - size < FIELD)
			return -EBADMSG;
		uint64_t valid = word(at + size);
		record->user_stack = at;
		record->user_stack_size = (uint32_t)(valid < size ? valid : size);
	}
	return 0;
}

static int decode_sample(const struct perf_layout *layout, const uint8_t *at, const uint8_t *end,
	struct perf_record *record)
{
	uint64_t type = layout->sample_type;

	/* One check for the fields of fixed size, and one for each part of variable size. */
	if ((size_t)(end - at) < field_count(type) * FIELD)
		return -EBADMSG;
	if (type & PERF_BIT_IDENTIFIER) {
		record->identifier = word(at);
		at += FIELD;
	}
	if (type & PERF_BIT_IP) {
		record->ip = word(at);
		at += FIELD;
	}
	at = read_thread_time(type, at, record);
	at += field_count(type & (PERF_BIT_ADDR | PERF_BIT_ID | PERF_BIT_STREAM_ID)) * FIELD;
	if (type & PERF_BIT_CPU) {
		record->cpu = (int32_t)half(at);
		at += FIELD;
	}
	if (type & PERF_BIT_PERIOD) {
		record->period = word(at);
		at += FIELD;
	}
	if (type & PERF_BIT_CALLCHAIN) {
		uint64_t count = word(at);
		at += FIELD;
		if (count > (size_t)(end - at) / FIELD)
			return -EBADMSG;
		record->callchain = at;
		record->callchain_count = (uint32_t)count; /* a record has at most 64 KiB */
		at += count * FIELD;
	}
	if (type & PERF_BIT_RAW) {
		if (end - at < 4 || half(at) > (size_t)(end - at) - 4)
			return -EBADMSG;
		record->raw_size = half(at);
		record->raw = at + 4;
		at += 4 + record->raw_size;
	}
	return decode_user(layout, at, end, record);
}

/* Removes the trailer; *end becomes the end of the body. */
static int decode_trailer(const struct perf_layout *layout, const uint8_t *at, const uint8_t **end,
	struct perf_record *record)
{
	uint64_t type = layout->sample_type &
			(PERF_BIT_TID | PERF_BIT_TIME | PERF_BIT_ID | PERF_BIT_STREAM_ID |
				PERF_BIT_CPU | PERF_BIT_IDENTIFIER);
	size_t size = field_count(type) * FIELD;

	if (!layout->sample_id_all)
		return 0;
	if ((size_t)(*end - at) < size)
		return -EBADMSG;
	*end -= size;
	at = read_thread_time(type, *end, record);
	at += field_count(type & (PERF_BIT_ID | PERF_BIT_STREAM_ID)) * FIELD;
	if (type & PERF_BIT_CPU) {
		record->cpu = (int32_t)half(at);
		at += FIELD;
	}
	if (type & PERF_BIT_IDENTIFIER)
		record->identifier = word(at);
	return 0;
}

/* A text that fills the rest of the body, terminated by NUL and padded. */
static int decode_text(const uint8_t *at, const uint8_t *end, struct perf_record *record)
{
	const uint8_t *nul = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;

	if (!nul)
		return -EBADMSG;
	record->text = (const char *)at;
	record->text_len = (uint32_t)(nul - at);
	return 0;
}

/*
 *   offset  size  field of MMAP and MMAP2, from the body's begin
 *   0       4     pid
 *   4       4     tid
 *   8       8     address
 *   16      8     length
 *   24      8     file offset
 *   MMAP2 only:
 *   32      24    major u32, minor u32, inode u64, generation u64
 *                 or, with PERF_MISC_MMAP_BUILD_ID: size u8, 3 reserved, 20 bytes of build id
 *   56      4     protection
 *   60      4     flags
 *   then          file name
 */
static int decode_mapping(const uint8_t *at, const uint8_t *end, struct perf_record *record)
{
	bool second = record->type == PERF_TYPE_MMAP2;
	size_t fixed = second ? 64 : 32;

	if ((size_t)(end - at) < fixed)
		return -EBADMSG;
	record->pid = half(at);
	record->tid = half(at + 4);
	record->address = word(at + 8);
	record->length = word(at + 16);
	record->file_offset = word(at + 24);
	if (second && (record->misc & PERF_MISC_MMAP_BUILD_ID)) {
		if (at[32] > PERF_BUILD_ID_MAX)
			return -EBADMSG;
		record->build_id_size = at[32];
		record->build_id = at + 36;
	} else if (second) {
		record->device_major = half(at + 32);
		record->device_minor = half(at + 36);
		record->inode = word(at + 40);
	}
	if (second) {
		record->protection = half(at + 56);
		record->flags = half(at + 60);
	}
	return decode_text(at + fixed, end, record);
}

static int decode_comm(const uint8_t *at, const uint8_t *end, struct perf_record *record)
{
	if (end - at < 8)
		return -EBADMSG;
	record->pid = half(at);
	record->tid = half(at + 4);
	record->exec = record->misc & PERF_MISC_COMM_EXEC;
	return decode_text(at + 8, end, record);
}

/* pid, ppid, tid, ptid, time: FORK and EXIT have a time even without a trailer. */
static int decode_task(const uint8_t *at, const uint8_t *end, struct perf_record *record)
{
	if (end - at < 24)
		return -EBADMSG;
	record->pid = half(at);
	record->parent_pid = half(at + 4);
	record->tid = half(at + 8);
	record->parent_tid = half(at + 12);
	record->time_ns = word(at + 16);
	record->has_time = true;
	return 0;
}

static int decode_lost(const uint8_t *at, const uint8_t *end, struct perf_record *record)
{
	/* LOST begins with the id of the event */
	size_t skip = record->type == PERF_TYPE_LOST ? FIELD : 0;

	if ((size_t)(end - at) < skip + FIELD)
		return -EBADMSG;
	record->lost = word(at + skip);
	return 0;
}

static int decode_switch(const uint8_t *at, const uint8_t *end, struct perf_record *record)
{
	record->switch_out = record->misc & PERF_MISC_SWITCH_OUT;
	record->preempted = record->switch_out && record->misc & PERF_MISC_PREEMPTED;
	if (record->type == PERF_TYPE_SWITCH)
		return 0;
	if (end - at < 8)
		return -EBADMSG;
	record->parent_pid = half(at);
	record->parent_tid = half(at + 4);
	return 0;
}

static int decode_body(const uint8_t *at, const uint8_t *end, struct perf_record *record)
{
	switch (record->type) {
	case PERF_TYPE_MMAP:
	case PERF_TYPE_MMAP2:
		return decode_mapping(at, end, record);
	case PERF_TYPE_COMM:
		return decode_comm(at, end, record);
	case PERF_TYPE_FORK:
	case PERF_TYPE_EXIT:
		return decode_task(at, end, record);
	case PERF_TYPE_LOST:
	case PERF_TYPE_LOST_SAMPLES:
		return decode_lost(at, end, record);
	case PERF_TYPE_SWITCH:
	case PERF_TYPE_SWITCH_CPU_WIDE:
		return decode_switch(at, end, record);
	case PERF_TYPE_THROTTLE:
	/* time, id, stream id: the trailer has all fields that we need */
	case PERF_TYPE_UNTHROTTLE:
	default:
		return 0;
	}
}

int perf_record_decode(const struct perf_layout *layout, const uint8_t *data, size_t size,
	struct perf_record *ret_record)
{
	struct perf_record record = { .cpu = -1 };
	uint16_t stated;

	if (size < PERF_RECORD_HEADER_SIZE)
		return -EBADMSG;
	memcpy(&record.type, data, 4);
	memcpy(&record.misc, data + 4, 2);
	memcpy(&stated, data + 6, 2);
	if (stated != size || !perf_layout_known(layout))
		return -EBADMSG;

	const uint8_t *at = data + PERF_RECORD_HEADER_SIZE;
	const uint8_t *end = data + size;
	int r;
	if (record.type == PERF_TYPE_SAMPLE) {
		r = decode_sample(layout, at, end, &record);
	} else {
		r = decode_trailer(layout, at, &end, &record);
		if (r >= 0)
			r = decode_body(at, end, &record);
	}
	if (r < 0)
		return r;
	*ret_record = record;
	return 0;
}

enum record_part { PART_NONE, PART_KERNEL, PART_USER };

/* The part of the chain that begins with this marker. */
static enum record_part part_of(uint64_t marker, uint32_t *flags)
{
	switch (marker) {
	case CONTEXT_KERNEL:
		return PART_KERNEL;
	case CONTEXT_USER:
		return PART_USER;
	case CONTEXT_GUEST:
	case CONTEXT_GUEST_KERNEL:
	case CONTEXT_GUEST_USER:
		*flags |= PERF_CHAIN_GUEST;
		return PART_NONE;
	case CONTEXT_HV:
	default:
		return PART_NONE;
	}
}

struct perf_callchain perf_callchain_flatten(const struct perf_record *record,
	uint64_t kernel_begin, uint32_t max_stack, uint64_t *frames, uint32_t room)
{
	struct perf_callchain chain = { 0 };
	uint32_t addresses = 0;
	uint16_t mode = record->misc & PERF_MISC_CPUMODE;
	enum record_part part = mode == PERF_MISC_KERNEL ? PART_KERNEL
				: mode == PERF_MISC_USER ? PART_USER
							 : PART_NONE;

	for (uint32_t i = 0; i < record->callchain_count; i++) {
		uint64_t address = word(record->callchain + (size_t)i * FIELD);
		if (address >= CONTEXT_MAX) {
			part = part_of(address, &chain.flags);
			continue;
		}
		addresses++;
		if (part == PART_NONE)
			continue;
		bool kernel_half = kernel_begin && address >= kernel_begin;
		bool impossible = address < FIRST_CODE_ADDRESS ||
				  (kernel_begin && kernel_half != (part == PART_KERNEL));
		/* Kernel frames come first; one after user frames would break the order. */
		if (impossible || (part == PART_KERNEL && chain.count > chain.kernel_count)) {
			chain.flags |= PERF_CHAIN_BROKEN;
			part = PART_NONE;
			continue;
		}
		if (chain.count == room) {
			chain.flags |= PERF_CHAIN_CUT;
			break;
		}
		frames[chain.count++] = address;
		chain.kernel_count += part == PART_KERNEL;
	}
	if (max_stack && addresses >= max_stack)
		chain.flags |= PERF_CHAIN_CUT;
	return chain;
}
