/*
 * The tables of a trace: what events refer to by index.
 *
 * A live session fills them from the kernel's records, a reader from the file's; analyses only
 * read. Item 0 of each is unused: index 0 means none. A live session replaces the table of stacks
 * when it is large, and reuses the rows of threads and processes that have ended
 * (trace_reuse_thread()).
 */
#ifndef SPOOR_TRACE_TRACE_H
#define SPOOR_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "code/codemap.h"
#include "trace/code_bytes.h"
#include "trace/event.h"
#include "trace/line_table.h"
#include "trace/schema.h"
#include "trace/session_counts.h"
#include "trace/session_options.h"

/* The kind of runtime that executes managed code in a process. */
enum runtime_kind {
	RUNTIME_NONE,
	RUNTIME_CORECLR,
	RUNTIME_NATIVEAOT,
	RUNTIME_MONO,
	RUNTIME_LIBSPOOR
};

struct process {
	uint32_t pid; /* of the recorder's namespace */
	uint32_t parent_pid;
	uint32_t inner_pid; /* in its own pid namespace; 0 unknown */
	uint32_t uid;
	/* strtab: short name (comm of the main thread, or the app's name for .NET) */
	uint32_t name;
	uint32_t executable;      /* strtab: path */
	uint32_t command;         /* strtab: command line, arguments joined with spaces */
	uint32_t container;       /* strtab: id, or 0 */
	uint32_t cgroup;          /* strtab: path of its control group, or 0 */
	uint32_t main_thread;     /* index in threads; created with the process */
	uint32_t runtime_version; /* strtab: "10.0.12" */
	/* strtab: why no names could be requested from its runtime; 0 = they could */
	uint32_t runtime_reason;
	/* strtab: diagnostics sessions that were opened in it, one a line */
	uint32_t runtime_sessions;
	uint8_t runtime_kind; /* enum runtime_kind */
	bool existed;         /* before the recording began */
	bool ended;
	uint64_t begin_ns;       /* first seen */
	uint64_t end_ns;         /* exit; 0 while it runs */
	uint64_t other_children; /* that it started, and that have no event */
	uint64_t other_lives_ns; /* the sum of how long they lived */
	uint32_t code_epoch;     /* grows with each CodeRemoved: an address may have a new owner */
	VEC(uint32_t) mappings;  /* indexes, in order of arrival */
	VEC(struct code_range) codes; /* CodeAdded, in order of arrival */
};

struct thread {
	uint32_t process; /* index; 0 only for the capture rows */
	uint32_t tid;
	uint32_t name; /* strtab */
};

struct mapping {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t file_offset;
	uint64_t from_ns;  /* seen since */
	uint64_t id;       /* in the file; 0 not written yet */
	uint32_t process;  /* 0: the kernel's, the same for all processes */
	uint32_t path;     /* strtab */
	uint32_t build_id; /* strtab: lower-case hexadecimal, or 0 */
	/* with a build id: of the image's first executable segment; both 0 if the recorder did not know */
	uint64_t text_vaddr;
	uint64_t text_offset;
	uint64_t device; /* with inode: which file, when there is no build id */
	uint64_t inode;
};

/* Which ELF image a mapping shows, from ProcessMappingMetadata. */
struct image_identity {
	uint32_t build_id; /* strtab, not 0 */
	uint64_t text_vaddr;
	uint64_t text_offset;
};

/* A name for a range of a mapping, as ProcessSymbol has it but with an exclusive end. */
struct symbol {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t mapping_id;
	uint32_t name; /* strtab */
};

/* One managed method body, from CodeAdded and CodeRemoved. */
struct code_range {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t mapping_id;
	uint64_t method_id;
	uint64_t module_id; /* the runtime's number; 0 when `module` has the name */
	/* strtab; 0: the ProcessSymbol of the same mapping and begin has it */
	uint32_t name;
	uint32_t module; /* strtab */
	/* process.code_epoch after its removal; UINT32_MAX while it exists */
	uint32_t removed_epoch;
	uint32_t older; /* the previous range with the same begin: its index in process.codes + 1 */
	uint8_t kind;   /* enum code_kind */
	uint8_t tier;   /* enum code_tier */
};

/* Losses and notices from the events of the file. */
struct loss {
	uint32_t source; /* strtab; loss_source_of() */
	uint32_t unit;   /* strtab; loss_unit_of() */
	uint64_t count;  /* 0 = unknown */
	uint32_t pid;
	int32_t cpu;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct notice {
	uint32_t severity; /* 1 note, 2 limited, 3 failed */
	uint32_t code;     /* strtab, all four */
	uint32_t text;
	uint32_t remedy;
	uint32_t process; /* index; 0 = the recording */
};

/* How far the clock of a source is from the recording's, as measured at a time. */
struct clock_offset {
	uint32_t source;   /* strtab: perf, eventpipe, ... */
	uint32_t process;  /* index; 0 = the machine's */
	int64_t offset_ns; /* source minus recording */
	uint64_t error_ns;
	uint64_t time_ns; /* when it was measured */
};

/* A control group's CPU limit, and how often it was reached during the recording. */
struct cpu_grant {
	uint32_t path;      /* strtab */
	uint32_t container; /* strtab: id, or 0 */
	uint64_t quota_ns;  /* in each period */
	uint64_t period_ns;
	uint64_t periods;
	uint64_t throttled_periods;
	uint64_t throttled_ns; /* added up over CPUs */
};

/* Session, SessionEnd and Machine. */
struct recording {
	uint32_t tool_version;
	uint32_t command_line;
	uint32_t options;               /* JSON */
	struct session_options session; /* of the options, by trace_set_options() */
	uint32_t host;
	uint32_t kernel;
	uint32_t system;
	uint32_t architecture;
	uint32_t cpu_model;
	uint32_t end_reason; /* 0: no SessionEnd: the recorder was killed */
	uint32_t cpu_online;
	uint32_t cpu_possible;
	uint32_t cpu_recorded; /* when not all of them; 0 all */
	uint32_t recorder_process;
	uint64_t memory_bytes;
	uint64_t page_size_bytes;
	uint64_t period_ns;
	uint64_t utc_ns;                 /* at sync_ns */
	uint64_t sync_ns;                /* begin of the recording on its clock */
	uint64_t end_ns;                 /* time of the last event */
	uint64_t counts[SESSION_COUNTS]; /* by enum session_count_id */
};

/*
 * A frame of a stack in place of a caller that the walk has missed: no code is at this address. It
 * counts as a frame without a name. Files have a mapping and a symbol of this name for it, for other
 * viewers.
 */
#define STACK_LOST_CALLER      UINT64_C(2)
#define STACK_LOST_CALLER_NAME "[caller unknown: no frame pointer]"

/* Interned callchains, leaf first, kernel and user in one list. Item 0 is the empty stack. */
struct stack {
	uint32_t at; /* of the first frame in `frames` */
	uint32_t count;
};

struct stack_table {
	VEC(struct stack) stacks;
	VEC(uint64_t) frames;
	struct map index;
};

struct trace {
	struct strtab strings;
	VEC(struct process) processes;
	VEC(struct thread) threads;
	VEC(struct mapping) mappings;
	VEC(struct symbol) symbols;
	VEC(struct image_identity) identities;
	VEC(struct schema) schemas;
	VEC(struct loss) losses;
	VEC(struct notice) notices;
	VEC(struct clock_offset) clock_offsets;
	VEC(struct cpu_grant) cpu_grants;
	struct stack_table stacks;
	struct line_table lines;
	struct code_bytes code;
	struct recording recording;
	/* schema index of each known event; 0 not yet used */
	uint32_t known_schemas[KNOWN_EVENT_COUNT];
	struct map by_pid; /* pid -> newest process */
	struct map by_tid; /* tid -> newest thread */
	struct map mapping_by_id;
};

int trace_init(struct trace *trace);
void trace_done(struct trace *trace);

/* Text of an index, and an index of a text. */
const char *trace_text(const struct trace *trace, uint32_t index);
uint32_t trace_add_text(struct trace *trace, const char *text);

/*
 * The provider of a program's events, `len` bytes of text. The name of one that Spoor writes events of (Universal.System), and each
 * that begins with "Spoor", gets " (of a program)": a program must not make events that readers take for Spoor's.
 */
uint32_t trace_add_foreign_provider(struct trace *trace, const char *name, size_t len);

/* The options of the recording, as the Session event has them (JSON). */
void trace_set_options(struct trace *trace, const char *json);

/*
 * The CPU limit of a process: of its container, its control group, or an ancestor of that; the only one, if
 * the recording is of chosen processes. NULL: none is known.
 */
const struct cpu_grant *trace_cpu_grant(const struct trace *trace, uint32_t process);

/*
 * The newest process with this pid, made with its main thread when there is none;
 * trace_new_process() makes a new life of the pid in any case. 0 when there is no memory.
 */
uint32_t trace_process(struct trace *trace, uint32_t pid);
uint32_t trace_new_process(struct trace *trace, uint32_t pid);
uint32_t trace_find_process(const struct trace *trace, uint32_t pid);

/* The newest thread `tid` of process `pid`, made when there is none or the tid was another's. */
uint32_t trace_thread(struct trace *trace, uint32_t pid, uint32_t tid);

/*
 * For live sessions, which must not grow with every thread: an ended thread (or process) is no
 * longer found by its number, and its place may be given to another. False: no memory, and nothing
 * is found under the new number.
 */
void trace_forget_thread(struct trace *trace, uint32_t thread);
void trace_forget_process(struct trace *trace, uint32_t process);
bool trace_reuse_thread(struct trace *trace, uint32_t thread, uint32_t process, uint32_t tid);

/* At the end of its process's list, to be filled by the caller; 0: no memory. */
uint32_t trace_add_mapping(struct trace *trace, uint32_t process);

/* The newest mapping that covers `address`, since later ones replace earlier; 0 none. */
uint32_t trace_find_mapping(const struct trace *trace, uint32_t process, uint64_t address);

/* The schema of a known event, made at its first use. 0 when there is no memory. */
uint32_t trace_known_schema(struct trace *trace, enum known_event known);

/* Index of the callchain, added when it is new; 0 for the empty one and when there is no memory. */
uint32_t stack_table_intern(struct stack_table *table, const uint64_t *frames, uint32_t count);
const uint64_t *stack_table_get(const struct stack_table *table, uint32_t index,
	uint32_t *ret_count);
size_t stack_table_size_bytes(const struct stack_table *table);
void stack_table_done(struct stack_table *table);

#endif
