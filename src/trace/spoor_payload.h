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

/* ExistingProcess, ProcessCreate. (ProcessExit is empty.) */
struct payload_process {
	uint64_t inner_pid;     /* in its own pid namespace; 0 unknown */
	const char *name;       /* short: viewers show what follows the last slash */
	const char *name_space; /* free text: the container's id */
};

struct payload_mapping {
	uint64_t id; /* unique in the file, not 0 */
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t file_offset;
	const char *path;
	uint64_t metadata_id; /* of a ProcessMappingMetadata written before; 0 none */
};

struct payload_mapping_metadata {
	uint64_t id;
	const char *symbols; /* JSON */
	const char *version; /* JSON; NULL is written as {} */
};

struct payload_symbol {
	uint64_t id; /* unique in the file, not 0 */
	uint64_t mapping_id;
	uint64_t begin;
	/* exclusive here; the file's is inclusive, which these functions see to */
	uint64_t end;
	const char *name;
	size_t name_len;
};

enum sample_flag {
	SAMPLE_STACK_CUT = 1 << 0,
	SAMPLE_WALK_STOPPED = 1 << 1,
	SAMPLE_USER_ONLY = 1 << 2,
	SAMPLE_KERNEL_ONLY = 1 << 3,
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
	uint64_t state;
	uint64_t ready_ns;
	uint64_t waker_pid;
	uint64_t waker_tid;
	uint64_t flags;
};

struct payload_session {
	uint64_t event_set; /* 1 */
	const char *tool_version;
	const char *command_line;
	const char *options; /* JSON */
	uint64_t period_ns;
	const char *clock;     /* "CLOCK_MONOTONIC" */
	uint64_t utc_ns;       /* at the file's sync time */
	uint64_t cpu_recorded; /* CPUs that were recorded, when not all; 0 all */
};

struct payload_clock_offset {
	const char *source; /* perf, eventpipe */
	int64_t offset_ns;  /* source clock minus the file's */
	uint64_t error_ns;
};

struct payload_cpu_state {
	uint64_t cpu;
	bool online;
};

/* Of a control group, since the first event of its limit. */
struct payload_cpu_limit {
	const char *path;
	const char *container;
	uint64_t quota_ns; /* CPU time in each period */
	uint64_t period_ns;
	uint64_t periods;
	uint64_t throttled_periods;
	uint64_t throttled_ns; /* added up over CPUs */
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

struct payload_machine {
	const char *host;
	const char *kernel;
	const char *system;
	const char *architecture;
	const char *cpu_model;
	uint64_t cpu_online;
	uint64_t cpu_possible;
	uint64_t memory_bytes;
	uint64_t page_size_bytes;
	const char *boot_id;
	const char *virtualization;
	int64_t perf_event_paranoid;
};

struct payload_loss {
	const char *source; /* ring, throttle, eventpipe, late, payload, disk */
	const char *unit;   /* samples, events, bytes */
	uint64_t count;     /* 0: not known how many */
	uint64_t pid;
	uint64_t tid;
	int64_t cpu; /* -1 none */
	const char *provider;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct payload_notice {
	uint64_t severity; /* 1 note, 2 limited, 3 failed */
	const char *code;
	const char *text;
	const char *remedy;
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

struct payload_runtime {
	const char *kind; /* coreclr, mono, nativeaot, libspoor */
	const char *version;
	const char *path;
	uint8_t cookie[16];
	uint64_t clr_instance;
	bool single_file;
	bool reachable;
	const char *reason;   /* why not reachable */
	const char *sessions; /* that were opened in it, one a line; "" in files of before */
};

/* How much CPU time a thread has used so far, from a begin of the writer's choice on. */
struct payload_thread_clock {
	uint64_t run_ns;
	/* CPU time of its process, in threads that lived between two readings */
	bool rest;
};

struct payload_process_end {
	int64_t exit_code; /* -1 unknown */
	uint64_t signal;
	uint64_t user_ns;
	uint64_t system_ns;
	uint64_t rss_max_bytes;
};

struct payload_thread_name {
	const char *name;
	uint64_t inner_tid;
};

struct payload_code_added {
	uint64_t begin;
	uint64_t end; /* exclusive */
	/* empty: the ProcessSymbol of the same mapping and begin has it */
	const char *name;
	const char *module;
	uint64_t kind; /* enum code_kind */
	uint64_t tier; /* enum code_tier */
	uint64_t method_id;
	uint64_t mapping_id;
};

struct payload_process_info {
	const char *command_line;
	const char *system;       /* "Linux" */
	const char *architecture; /* "x64" */
};

bool payload_process(struct bytes *out, const struct payload_process *process);
bool payload_mapping(struct bytes *out, const struct payload_mapping *mapping);
bool payload_mapping_metadata(struct bytes *out, const struct payload_mapping_metadata *metadata);
bool payload_symbol(struct bytes *out, const struct payload_symbol *symbol);
/* The default values {period_ns, 1, 0} are left out. */
void payload_cpu(struct bytes *out, const struct payload_cpu *sample, uint64_t period_ns);
void payload_cswitch(struct bytes *out, const struct payload_cswitch *change);
bool payload_session(struct bytes *out, const struct payload_session *session);
bool payload_session_end(struct bytes *out, const struct payload_session_end *end);
bool payload_machine(struct bytes *out, const struct payload_machine *machine);
bool payload_loss(struct bytes *out, const struct payload_loss *loss);
bool payload_notice(struct bytes *out, const struct payload_notice *notice);
bool payload_clock_offset(struct bytes *out, const struct payload_clock_offset *offset);
bool payload_cpu_limit(struct bytes *out, const struct payload_cpu_limit *limit);
void payload_cpu_state(struct bytes *out, const struct payload_cpu_state *state);
bool payload_process_facts(struct bytes *out, const struct payload_process_facts *facts);
bool payload_runtime(struct bytes *out, const struct payload_runtime *runtime);
void payload_thread_clock(struct bytes *out, const struct payload_thread_clock *clock);
void payload_process_end(struct bytes *out, const struct payload_process_end *end);
bool payload_thread_name(struct bytes *out, const struct payload_thread_name *name);
bool payload_code_added(struct bytes *out, const struct payload_code_added *code);
void payload_code_removed(struct bytes *out, uint64_t begin, uint64_t end);
bool payload_process_info(struct bytes *out, const struct payload_process_info *info);

/* ELF identity as the JSON of payload_mapping_metadata.symbols; debug_link may be NULL. */
void payload_elf_metadata(struct bytes *out, const char *build_id, const char *debug_link,
	uint64_t p_vaddr, uint64_t p_offset);

int payload_read_process(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_process *ret_process);
int payload_read_mapping(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_mapping *ret_mapping);
int payload_read_mapping_metadata(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_mapping_metadata *ret_metadata);
int payload_read_symbol(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_symbol *ret_symbol);
/* period_ns 0: a sample without a weight has a weight of its value in milliseconds. */
int payload_read_cpu(const uint8_t *payload, size_t size, uint64_t period_ns,
	struct payload_cpu *ret_sample);
int payload_read_cswitch(const uint8_t *payload, size_t size, struct payload_cswitch *ret_change);
int payload_read_session(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_session *ret_session);
/* `counts` has room for PAYLOAD_COUNTS_MAX; ret_end->counts points at it. */
int payload_read_session_end(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_count *counts, struct payload_session_end *ret_end);
int payload_read_clock_offset(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_clock_offset *ret_offset);
int payload_read_cpu_limit(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_cpu_limit *ret_limit);
int payload_read_machine(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_machine *ret_machine);
int payload_read_loss(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_loss *ret_loss);
int payload_read_notice(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_notice *ret_notice);
/* `arguments` has room for PAYLOAD_ARGUMENTS_MAX; ret_facts->arguments points at it. */
int payload_read_process_facts(const uint8_t *payload, size_t size, struct strtab *strings,
	const char **arguments, struct payload_process_facts *ret_facts);
int payload_read_runtime(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_runtime *ret_runtime);
int payload_read_thread_clock(const uint8_t *payload, size_t size,
	struct payload_thread_clock *ret_clock);
int payload_read_process_end(const uint8_t *payload, size_t size,
	struct payload_process_end *ret_end);
int payload_read_thread_name(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_thread_name *ret_name);
int payload_read_code_added(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_code_added *ret_code);
int payload_read_code_removed(const uint8_t *payload, size_t size, uint64_t *ret_begin,
	uint64_t *ret_end);
int payload_read_process_info(const uint8_t *payload, size_t size, struct strtab *strings,
	struct payload_process_info *ret_info);

#endif
