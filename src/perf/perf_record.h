/*
 * One record of the kernel's perf ring (or of perf.data), decoded in place; texts and callchains
 * are borrowed.
 *
 * The layout says which fields exist: the sample_type, which all events of a ring share, and
 * sample_id_all, which appends time, thread and CPU to every record that is not a sample. Bytes are
 * in the order of this machine. Every field is checked against the end of the record.
 *
 *   offset  size  field of every record
 *   0       4     type    enum perf_record_type
 *   4       2     misc    PERF_MISC_*
 *   6       2     size    of the whole record, header included
 */
#ifndef SPOOR_PERF_PERF_RECORD_H
#define SPOOR_PERF_PERF_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's numbers; tests/feature/recording/test_perf_numbers.c proves that they agree. */
enum perf_record_type {
	PERF_TYPE_MMAP = 1,
	PERF_TYPE_LOST = 2,
	PERF_TYPE_COMM = 3,
	PERF_TYPE_EXIT = 4,
	PERF_TYPE_THROTTLE = 5,
	PERF_TYPE_UNTHROTTLE = 6,
	PERF_TYPE_FORK = 7,
	PERF_TYPE_SAMPLE = 9,
	PERF_TYPE_MMAP2 = 10,
	PERF_TYPE_LOST_SAMPLES = 13,
	PERF_TYPE_SWITCH = 14,
	PERF_TYPE_SWITCH_CPU_WIDE = 15,
};

enum perf_sample_bit {
	PERF_BIT_IP = 1 << 0,
	PERF_BIT_TID = 1 << 1,
	PERF_BIT_TIME = 1 << 2,
	PERF_BIT_ADDR = 1 << 3,
	PERF_BIT_CALLCHAIN = 1 << 5,
	PERF_BIT_ID = 1 << 6,
	PERF_BIT_CPU = 1 << 7,
	PERF_BIT_PERIOD = 1 << 8,
	PERF_BIT_STREAM_ID = 1 << 9,
	PERF_BIT_RAW = 1 << 10,
	PERF_BIT_USER_REGISTERS = 1 << 12,
	PERF_BIT_USER_STACK = 1 << 13,
	PERF_BIT_IDENTIFIER = 1 << 16,
};

#define PERF_MISC_CPUMODE       0x7u
#define PERF_MISC_KERNEL        1u
#define PERF_MISC_USER          2u
#define PERF_MISC_MMAP_DATA     (1u << 13)
#define PERF_MISC_COMM_EXEC     (1u << 13)
#define PERF_MISC_SWITCH_OUT    (1u << 13)
#define PERF_MISC_MMAP_BUILD_ID (1u << 14)
#define PERF_MISC_PREEMPTED     (1u << 14)

#define PERF_RECORD_HEADER_SIZE 8u
#define PERF_BUILD_ID_MAX       20u
#define PERF_PROT_EXEC          4u

struct perf_layout {
	uint64_t sample_type;
	uint64_t user_registers; /* which ones a sample has, one bit each (sample_regs_user) */
	bool sample_id_all;
};

struct perf_record {
	/* enum perf_record_type; for other types only pid, tid, time and cpu are set */
	uint32_t type;
	uint16_t misc;
	bool has_time; /* the layout has the fields for time_ns, pid, tid and cpu */
	uint64_t time_ns;
	/* of the sample or the described process; UINT32_MAX: the thread has ended */
	uint32_t pid;
	uint32_t tid;
	int32_t cpu;         /* -1 unknown */
	uint64_t identifier; /* 0 if the layout has no identifier */

	/* PERF_TYPE_SAMPLE */
	uint64_t period;
	uint64_t ip;
	/* callchain_count native 64-bit words with context markers, for perf_callchain_flatten() */
	const uint8_t *callchain;
	uint32_t callchain_count;
	/* the fields of a tracepoint, raw_size bytes; other events have fewer than 8 */
	const uint8_t *raw;
	uint32_t raw_size;
	/* one word for each bit of the layout's user_registers; NULL: none, as in a kernel thread */
	const uint8_t *user_registers;
	bool user_is_64; /* the registers are those of a 64-bit program */
	/* the end of the user stack, user_stack_size bytes from the stack pointer on */
	const uint8_t *user_stack;
	uint32_t user_stack_size;

	/* PERF_TYPE_MMAP, PERF_TYPE_MMAP2 */
	uint64_t address;
	uint64_t length;
	uint64_t file_offset;
	uint32_t device_major;
	uint32_t device_minor;
	uint64_t inode;
	uint32_t protection;     /* PROT_*; 0 for MMAP */
	uint32_t flags;          /* MAP_* */
	const uint8_t *build_id; /* build_id_size bytes */
	uint8_t build_id_size;   /* 0: no build id; device and inode are set instead */
	/* file name, or the comm of PERF_TYPE_COMM; text_len bytes without NUL */
	const char *text;
	uint32_t text_len;

	/* PERF_TYPE_COMM */
	bool exec;

	/* PERF_TYPE_FORK, _EXIT; other thread of PERF_TYPE_SWITCH_CPU_WIDE */
	uint32_t parent_pid;
	uint32_t parent_tid;

	/* PERF_TYPE_LOST, PERF_TYPE_LOST_SAMPLES: records lost right before this one */
	uint64_t lost;

	/* PERF_TYPE_SWITCH, PERF_TYPE_SWITCH_CPU_WIDE */
	bool switch_out;
	bool preempted; /* switched out while it could run on */
};

/* Whether records of this layout can be decoded. Samples with fields beyond those listed cannot. */
bool perf_layout_known(const struct perf_layout *layout);

/* `size` must equal that in the header. -EBADMSG: malformed. Texts are untrusted and not copied. */
int perf_record_decode(const struct perf_layout *layout, const uint8_t *data, size_t size,
	struct perf_record *ret_record);

enum perf_chain_flag {
	PERF_CHAIN_CUT = 1 << 0,    /* at the kernel's limit: the outer frames are missing */
	PERF_CHAIN_BROKEN = 1 << 1, /* at an address that cannot be code */
	PERF_CHAIN_GUEST = 1 << 2,  /* frames of a virtual machine's guest were omitted */
};

struct perf_callchain {
	uint32_t count; /* frames written */
	/* the first kernel_count frames are kernel code, the rest is user code */
	uint32_t kernel_count;
	uint32_t flags; /* of enum perf_chain_flag */
};

/*
 * A sample's callchain as a flat list, leaf first: kernel frames, then user frames. An address that
 * cannot be code (in the first page; on the other side of `kernel_begin`) ends its part, because
 * the unwinder found the following frames through it. `kernel_begin` is arch->kernel_begin, or 0 to
 * check nothing; `max_stack` is the kernel's limit, 0 if unknown.
 */
struct perf_callchain perf_callchain_flatten(const struct perf_record *record,
	uint64_t kernel_begin, uint32_t max_stack, uint64_t *frames, uint32_t room);

#endif
