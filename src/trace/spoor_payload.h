/*
 * The payloads of Spoor's own events and of the universal ones: encoding and decoding.
 *
 * payload_X() appends the payload in the layout of its schema; payload_read_X() reads it back into
 * the same struct. Texts may have any content (invalid UTF-8 becomes U+FFFD in the file), and NULL
 * is the empty one. They are cut below EVENT_PAYLOAD_MAX; writers then return true. Memory that
 * runs out shows in out->failed.
 *
 * Readers return 0 or -EBADMSG. Decoded texts are in the string table given, valid as long as the
 * table; fields that a later version of Spoor appended are ignored.
 */
#ifndef SPOOR_TRACE_SPOOR_PAYLOAD_H
#define SPOOR_TRACE_SPOOR_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct event;
struct recording;
struct strtab;
struct trace;

/*
 * payloads.def lists the members of most payloads: struct payload_NAME, and
 *
 *   bool payload_NAME(struct bytes *out, const struct payload_NAME *payload);
 *   int payload_read_NAME(const uint8_t *payload, size_t size, struct strtab *strings,
 *           struct payload_NAME *ret_payload);
 */
#define PAYLOAD(name)            struct payload_##name {
#define UTF8(member)             const char *member;
#define UTF8_OR(member, other)   const char *member;
#define TEXT(member)             const char *member;
#define VARUINT(member)          uint64_t member;
#define VARINT(member)           int64_t member;
#define U64(member)              uint64_t member;
#define BOOLEAN(member)          bool member;
#define GUID(member)             uint8_t member[16];
#define APPENDED_VARUINT(member) uint64_t member;
#define APPENDED_TEXT(member)    const char *member;
#define END(name)                                                                            \
	}                                                                                    \
	;                                                                                    \
	bool payload_##name(struct bytes *out, const struct payload_##name *payload);        \
	int payload_read_##name(const uint8_t *payload, size_t size, struct strtab *strings, \
		struct payload_##name *ret_payload);
#include "trace/payloads.def"

struct payload_symbol {
	uint64_t id; /* unique in the file, not 0 */
	uint64_t mapping_id;
	uint64_t begin;
	/* exclusive here; the file's is inclusive, which these functions see to */
	uint64_t end;
	const char *name;
	size_t name_len;
};

#define PAYLOAD_LINES_MAX 2000u

/* The IL offsets of a sampled body of managed code, after its CodeAdded. */
struct payload_il_offsets {
	uint64_t mapping_id; /* these three are CodeAdded's */
	uint64_t begin;
	uint64_t method_id;
	uint32_t token;       /* of the method in its assembly */
	const char *assembly; /* path, as the target sees it */
	uint8_t pdb_id[16];   /* GUID of its symbol file, as in the image */
	const uint32_t *native;
	const uint32_t *il;
	size_t count; /* at most PAYLOAD_LINES_MAX are written */
};

#define PAYLOAD_CODE_MAX 32768u

/* Machine code of a sampled body of managed code, after its CodeAdded; in order of offset. */
struct payload_code_bytes {
	uint64_t mapping_id; /* these three are CodeAdded's */
	uint64_t begin;
	uint64_t method_id;
	uint32_t offset;
	const uint8_t *bytes; /* read: borrowed from the payload */
	size_t size;          /* at most PAYLOAD_CODE_MAX */
};

/*
 * Source lines of sampled places: trace/line_table.h. Offset i has frame_counts[i] frames, which
 * follow those of offset i - 1. Functions and files are numbers in `texts`, from 1; 0: none.
 */
struct payload_source_lines {
	uint64_t mapping_id;
	uint64_t begin;
	uint64_t method_id;
	const char *const *texts;
	const uint32_t *offsets;
	const uint32_t *frame_counts;
	const uint32_t *functions;
	const uint32_t *files;
	const uint32_t *lines;
	size_t text_count;
	size_t offset_count;
	size_t frame_count;
};

enum sample_flag {
	SAMPLE_STACK_CUT = 1 << 0,
	SAMPLE_WALK_STOPPED = 1 << 1,
	SAMPLE_USER_ONLY = 1 << 2,
	SAMPLE_GUEST = 1 << 4,
};

struct payload_cpu {
	uint64_t value; /* whole milliseconds; the caller carries the rest */
	uint64_t weight_ns;
	uint64_t count; /* samples that this event represents */
	uint64_t flags; /* enum sample_flag */
};

struct payload_cswitch {
	uint64_t value; /* ns off CPU */
	uint64_t state; /* enum switch_state */
	uint64_t ready_ns;
	uint64_t waker_pid;
	uint64_t waker_tid;
	uint64_t flags; /* enum switch_flag */
};

struct payload_cpu_state {
	uint64_t cpu;
	bool online;
};

struct payload_count {
	const char *name;
	uint64_t count;
};

#define PAYLOAD_COUNTS_MAX    64u
#define PAYLOAD_ARGUMENTS_MAX 256u

struct payload_session_end {
	const char *reason;
	const struct payload_count *counts;
	size_t count_count; /* at most PAYLOAD_COUNTS_MAX are written */
};

/* payload_process_use.known: which of its numbers are known. */
enum process_use_known {
	PROCESS_USE_TIMES = 1 << 0, /* cpu_ns and wait_ns */
	PROCESS_USE_MEMORY = 1 << 1,
	PROCESS_USE_DESCRIPTORS = 1 << 2,
	PROCESS_USE_WRITES = 1 << 3,
};

/* payload_look_thread.flags */
enum look_thread_flag {
	LOOK_THREAD_WORKER = 1 << 0, /* of the thread pool */
	LOOK_THREAD_FINALIZER = 1 << 1,
	LOOK_THREAD_IDLE = 1 << 2, /* it waits for something to do */
	LOOK_THREAD_AT_LOCK = 1 << 3,
	LOOK_THREAD_AT_TASK = 1 << 4,
};

#define PAYLOAD_LOOK_FRAMES_MAX 64u

/* A stack of a look, leaf first. */
struct payload_look_stack {
	uint64_t look;
	uint64_t stack; /* number within the look, from 1 */
	uint64_t own;   /* the first frame of the user's own code, from 1; 0: none */
	const char *const *frames;
	size_t frame_count; /* at most PAYLOAD_LOOK_FRAMES_MAX are written */
};

struct payload_process_facts {
	int64_t parent_pid;
	uint64_t uid;
	uint64_t gid;
	uint64_t inner_pid;
	uint64_t born_ns;
	const char *executable;
	const char *command; /* comm */
	const char *const *arguments;
	size_t argument_count; /* at most PAYLOAD_ARGUMENTS_MAX are written */
	const char *container;
	const char *cgroup;
	uint64_t pid_namespace;
	uint64_t mount_namespace;
};

bool payload_symbol(struct bytes *out, const struct payload_symbol *symbol);
/* The default values {period_ns, 1, 0} are left out. */
void payload_cpu(struct bytes *out, const struct payload_cpu *sample, uint64_t period_ns);
void payload_cswitch(struct bytes *out, const struct payload_cswitch *change);
bool payload_session_end(struct bytes *out, const struct payload_session_end *end);
void payload_cpu_state(struct bytes *out, const struct payload_cpu_state *state);
bool payload_il_offsets(struct bytes *out, const struct payload_il_offsets *il);
void payload_code_bytes(struct bytes *out, const struct payload_code_bytes *code);
bool payload_source_lines(struct bytes *out, const struct payload_source_lines *lines);
bool payload_look_stack(struct bytes *out, const struct payload_look_stack *stack);
bool payload_process_facts(struct bytes *out, const struct payload_process_facts *facts);

/* ELF identity as the JSON of payload_mapping_metadata.symbols; debug_link may be NULL. */
void payload_elf_metadata(struct bytes *out, const char *build_id, const char *debug_link,
	uint64_t p_vaddr, uint64_t p_offset);

int payload_read_symbol(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_symbol *ret_symbol);
/* period_ns 0: a sample without a weight has a weight of its value in milliseconds. */
int payload_read_cpu(const uint8_t *payload, size_t size, uint64_t period_ns,
	struct payload_cpu *ret_sample);
int payload_read_cswitch(const uint8_t *payload, size_t size, struct payload_cswitch *ret_change);
/* `counts` has room for PAYLOAD_COUNTS_MAX; ret_end->counts points at it. */
int payload_read_session_end(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_count *counts, struct payload_session_end *ret_end);
int payload_read_code_bytes(const uint8_t *payload, size_t size,
	struct payload_code_bytes *ret_code);
/* `native` and `il` have room for PAYLOAD_LINES_MAX each; *ret_il points at them. */
int payload_read_il_offsets(const uint8_t *payload, size_t size, struct strtab *strings,
	uint32_t *native, uint32_t *il, struct payload_il_offsets *ret_il);

struct line_table;
/* Reads straight into the table. */
int payload_read_source_lines(const uint8_t *payload, size_t size, struct strtab *strings,
	struct line_table *table);
/* `frames` has room for PAYLOAD_LOOK_FRAMES_MAX; ret_stack->frames points at it. */
int payload_read_look_stack(const uint8_t *payload, size_t size, struct strtab *strings,
	const char **frames, struct payload_look_stack *ret_stack);
/* `arguments` has room for PAYLOAD_ARGUMENTS_MAX; ret_facts->arguments points at it. */
int payload_read_process_facts(const uint8_t *payload, size_t size, struct strtab *strings,
	const char **arguments, struct payload_process_facts *ret_facts);

#endif
