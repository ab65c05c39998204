/*
 * Names for what samples hit, while recording.
 *
 * For each address that occurs in a stack of a process, once: find what it belongs to (kernel, an ELF image, managed code, the vdso, a
 * stub), and hand out the mapping and the symbol as events, so that the file names itself and a killed recording keeps its names.
 * Names that may still come (the runtime tells of a method some 100 ms after it first ran) are waited for; what stays unnamed keeps
 * module, build id and offset, and is counted by cause.
 *
 * Files are opened and read elsewhere (name_desk.h); a name from there is in the file a moment later, and at the end it is waited for, five
 * seconds at most.
 *
 * Order of calls: names_init(); then for each sample, in time order, names_hit(); names_resolve() at each flush; names_finish() once at
 * the end; names_done(). Not thread-safe.
 */
#ifndef SPOOR_SYMBOLIZE_NAMES_H
#define SPOOR_SYMBOLIZE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vec.h"
#include "code/codemap.h"
#include "trace/schema.h"

struct arch_stub;
struct box;
struct diag;
struct kernel_symbols;
struct name_answer;
struct name_desk;
struct name_facts;
struct symbol_file;
struct trace;

/* Why a frame has no name. */
enum unnamed_cause {
	UNNAMED_NO_SYMBOLS,    /* the image has none for it */
	UNNAMED_NO_IMAGE,      /* the image could not be opened */
	UNNAMED_NO_MAPPING,    /* the address is in no mapping we know */
	UNNAMED_NO_METHOD,     /* managed memory without a method and without a known stub */
	UNNAMED_NOT_ASKED,     /* managed, and its process could not be asked */
	UNNAMED_KERNEL_HIDDEN, /* the kernel does not show its symbols to this user */
	UNNAMED_NO_MEMORY,     /* at the cap */
	UNNAMED_CAUSE_COUNT
};

/* How far the names of a process's managed code are known. managed.c sets it. */
enum managed_state {
	MANAGED_NONE,     /* not a .NET process, as far as known */
	MANAGED_ASKING,   /* names are on their way */
	MANAGED_KNOWN,    /* everything up to now is in the codemap */
	MANAGED_REFUSED,  /* it cannot be asked */
};

struct names_process {
	struct codemap codemap;
	uint32_t changes_seen;    /* codemap.changes when removed bodies were last looked for */
	uint8_t managed;          /* enum managed_state */
	bool untold;              /* its runtime does not tell of new methods: another rundown does, */
	bool untold_hit;          /* and is wanted, as code was hit that the last one did not have */
	uint64_t rundown_ns;      /* when the last one was begun */
	uint64_t reported_ns;     /* its runtime has sent all load and unload events up to this time; UINT64_MAX: it will send no more */
	bool unloads_code;        /* it has a collectible assembly, so that any compiled method may be removed */
	bool maps_read;           /* perf map, jitdump: what they had is in the codemap, */
	uint64_t maps_asked;      /* and the question for it; 0 none yet */
	bool awaits;              /* an answer about one of its addresses */
	bool kernel_mapped;       /* the kernel's mapping is written for it */
	bool unmapped;            /* an address was hit that lies in none of its mappings; whoever reads them anew takes it back */
	bool sharing_asked;
	uint64_t sharing;         /* with whom it shares symbol tables; 0 not to be known */
};

/* Emits one known event about a process; the payload is borrowed. */
typedef int names_emit(void *context, enum known_event known, uint32_t process,
	const struct bytes *payload);

struct names_options {
	struct trace *trace;
	const struct box *box;
	names_emit *emit;
	void *context;
	const char *const *symbol_paths; /* folders with separate debug files, NULL-terminated, or NULL */
	bool mappings_only;              /* no names: what is hit keeps module, build id and offset */
	bool sound;                      /* who walked the stacks knew the way: they are not cut where no mapping is known yet */
};

/* A distinct address of a process (process 0: the kernel's). */
struct names_hit_entry {
	uint64_t address;
	uint64_t time_ns;     /* first hit */
	uint32_t process;
	uint32_t mapping;     /* in trace.mappings; 0 none known */
	uint8_t state;        /* names.c: waiting, named, or why not */
	uint8_t stub_tried;
	bool gone;            /* the code it was in has ended: a new sample there asks anew */
	uint8_t stub_offset;  /* how far before the address the stub begins */
	const struct arch_stub *stub;
};

/* A distinct (process, stack, epoch) and how often it was sampled. */
struct names_pair {
	uint32_t process;
	uint32_t stack_index;
	uint32_t epoch;
	uint32_t count;
	uint32_t sound_index; /* the stack without what is no code; often stack_index itself */
};

/* One file, for all processes that map it. Its number is what the desk knows it by. */
struct names_image {
	struct name_facts *facts; /* NULL: none, or not known yet */
	bool known;
};

struct names {
	struct names_options options;
	VEC(struct names_process) processes;   /* parallel to trace.processes */
	VEC(struct names_hit_entry) hits;      /* every distinct (process, address); item 0 unused */
	VEC(struct names_pair) pairs;          /* item 0 unused */
	VEC(struct names_image) images;        /* item 0 unused */
	VEC(uint32_t) waiting;                 /* hits without an answer yet */
	VEC(uint64_t) frames;                  /* scratch */
	VEC(uint64_t) previous;                /* the stack that was looked at last, */
	uint32_t previous_process;             /* and whose; 0 none */
	struct map hit_index;                  /* hash of (process, address) -> hits */
	struct map pair_index;                 /* hash of (process, stack, epoch) -> pairs */
	struct map image_index;                /* file identity -> images */
	struct map symbol_index;               /* hash of (mapping id, begin) that is written -> the mapping id's low half */
	struct kernel_symbols *kernel_asked;   /* the kernel names what is hit; NULL: it cannot, or not for us */
	uint64_t kernel_mapping_id;
	int kernel_error;                      /* why the kernel's names are not to be had; 1 not tried */
	struct symbol_file *vdso;              /* ours, which is everybody's; NULL: none, or not tried */
	bool vdso_tried;
	struct name_desk *desk;                /* where files are opened and read; NULL until something is asked */
	struct map asked;                      /* hash of a question -> 1, until its answer is there */
	VEC(struct name_answer *) answers;     /* that the present pass goes by, and some of earlier ones */
	struct map answer_index;               /* hash of a question -> answers, plus one */
	uint64_t maps_asked;                   /* number of the last such question */
	bool asking_ended;                     /* what has no answer yet will have none */
	bool kernel_needs_right;               /* asking it takes CAP_BPF each time (before Linux 5.19) */
	uint64_t next_id;                      /* of mappings, symbols and metadata */
	uint64_t frames_total;                 /* frames of samples, repeated ones too; complete after names_finish() */
	uint64_t frames_unnamed[UNNAMED_CAUSE_COUNT];
	struct bytes text;                     /* scratch */
	struct bytes payload;
	bool full;                             /* the cap was reached: nothing new is named */
	bool files_skipped;                    /* files of targets cannot be opened safely here, so they are not */
};

int names_init(struct names *names, const struct names_options *options);

/* Opens what names the kernel, while the rights for it are there. Else it is done at the first hit. */
void names_open_kernel(struct names *names);

/* The state of a process; NULL when there is no memory. Valid until the next process appears. */
struct names_process *names_process(struct names *names, uint32_t process);

/*
 * A sample's stack. Cheap when the pair was seen before. *ret_stack_index is the stack to write: a walk along frame pointers that has gone astray
 * (libc keeps none) is cut at the first user frame that lies in no executable mapping, because what follows was found through it.
 */
int names_hit(struct names *names, uint32_t process, uint32_t stack_index, uint64_t time_ns,
	uint32_t *ret_stack_index);

/*
 * Tells of bodies that have ended since the last call. `each` gets them in no order; `code` is an index in the process's codemap, the body is
 * borrowed. Whether it matters is known when its end has its turn among the samples: names_end_code().
 */
void names_removed_codes(struct names *names,
	void (*each)(void *context, uint32_t process, uint32_t code, const struct code *body), void *context);

/*
 * All samples from before the body's end have been hit: what waits for a name in its range gets it now, and addresses there will be asked for
 * again. Gives the body when it is in the file (borrowed), else NULL.
 */
const struct code *names_end_code(struct names *names, uint32_t process, uint32_t code, uint64_t begin);

/* Answers what can be answered now. `now_ns` is CLOCK_MONOTONIC. */
int names_resolve(struct names *names, uint64_t now_ns);

/* Last answers: what still waits gets what the fallbacks know, or is counted. */
int names_finish(struct names *names);

/* An answer about one of the process's addresses is still to come: its place must stay. */
bool names_awaits(const struct names *names, uint32_t process);

/* The trace's stack table is being emptied: pairs are forgotten, addresses and symbols are not. */
void names_forget_stacks(struct names *names);

/*
 * Processes that have ended are given up: `dead` has a true for each. What still waits for them gets its last answer, their frames are counted, and
 * their places may be given to others.
 */
void names_forget_processes(struct names *names, const bool *dead, uint32_t count);

/* Drops what can be read again from files, symbol tables; in a while, by the desk's thread. */
void names_make_room(struct names *names);

/* Memory of all tables. */
uint64_t names_size_bytes(const struct names *names);

void names_done(struct names *names);

#endif
