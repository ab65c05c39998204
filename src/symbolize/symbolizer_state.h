/* The state of a symbolizer (symbolizer.h), for the files that are part of it. */
#ifndef SPOOR_SYMBOLIZE_SYMBOLIZER_STATE_H
#define SPOOR_SYMBOLIZE_SYMBOLIZER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vec.h"
#include "code/codemap.h"
#include "symbolize/name_states.h"
#include "trace/schema.h"

struct arch_stub;
struct box;
struct diag;
struct kernel_symbols;
struct name_answer;
struct symbol_worker;
struct name_facts;
struct symbol_file;
struct trace;

/* Why a frame has no name. */
enum unnamed_cause {
	UNNAMED_NO_SYMBOLS, /* the image has no symbol there */
	UNNAMED_NO_IMAGE,   /* the image could not be opened */
	UNNAMED_NO_MAPPING, /* the address is in no known mapping */
	/* code memory of a runtime, without a method and without a known stub */
	UNNAMED_NO_METHOD,
	UNNAMED_NOT_ASKED,     /* managed code of a process without a runtime connection */
	UNNAMED_KERNEL_HIDDEN, /* the kernel hides its symbols from this user */
	UNNAMED_NO_MEMORY,     /* the memory limit was reached */
	UNNAMED_FREED,         /* code that may be freed, and was not read while it ran */
	UNNAMED_CAUSE_COUNT
};

struct symbolizer_process {
	struct codemap codemap;
	bool from_memory; /* methods that were read from its memory are used */
	/* methods read from its memory, while its runtime may still send them: see seen_code.h */
	struct codemap seen;
	uint32_t changes_seen; /* codemap.changes when removed bodies were last searched */
	enum managed_state managed;
	/* its runtime does not report new methods; another rundown does */
	bool needs_rundown_for_new_methods;
	/* samples fell into code that the last rundown did not report, so another one is needed */
	bool has_unresolved_samples;
	uint64_t rundown_ns; /* begin of the last rundown */
	/* its runtime has sent all load and unload events until then; UINT64_MAX: no more come */
	uint64_t reported_ns;
	/* it has a collectible assembly, so that any compiled method may be removed */
	bool unloads_code;
	enum maps_state maps;
	uint64_t maps_question; /* in MAPS_ASKED: number of the question */
	bool awaits;            /* a question about one of its addresses has no answer yet */
	bool kernel_mapped;     /* the kernel's mapping was written for it */
	bool lost_mapped;       /* the mapping of STACK_LOST_CALLER was written for it */
	/*
	 * a sampled address is in none of its known mappings; the code that reads its mappings
	 * again clears this
	 */
	bool unmapped;
	enum code_memory_state memory; /* opened with options.code only */
	int memory_fd;                 /* in CODE_MEMORY_OPEN */
	bool sharing_asked;
	/* processes with the same value share symbol tables; 0: unknown */
	uint64_t sharing;
};

/* Emits one known event about a process; the payload is borrowed. */
typedef int symbolizer_emit(void *context, enum known_event known, uint32_t process,
	const struct bytes *payload);

struct symbolizer_options {
	struct trace *trace;
	const struct box *box;
	symbolizer_emit *emit;
	void *context;
	/* folders with separate debug files, NULL-terminated, or NULL */
	const char *const *symbol_paths;
	/* write the IL offsets of managed code, where the runtime reports them */
	bool lines;
	/* write the machine code of sampled managed code */
	bool code;
	/* write no names: addresses keep module, build id and offset */
	bool mappings_only;
	/* the stacks were walked reliably: they are not cut at a frame without a known mapping */
	bool sound;
};

/* struct symbolizer_hit_entry.state: values below HIT_WAITING are enum unnamed_cause. */
enum hit_state { HIT_WAITING = UNNAMED_CAUSE_COUNT, HIT_NAMED };

/* A distinct sampled address of a process (process 0: of the kernel). */
struct symbolizer_hit_entry {
	uint64_t address;
	uint64_t time_ns; /* of the first sample */
	uint32_t process;
	uint32_t mapping; /* index in trace.mappings; 0: unknown */
	uint8_t state;    /* enum hit_state: waiting, named, or the cause */
	uint8_t stub_tried;
	/* tombstone: the code there was removed, and a new sample is looked up again */
	bool gone;
	uint8_t stub_offset; /* bytes from the begin of the stub to the address */
	const struct arch_stub *stub;
};

/* A distinct (process, stack, epoch) and its number of samples. */
struct symbolizer_pair {
	uint32_t process;
	uint32_t stack_index;
	uint32_t epoch;
	uint32_t count;
	/* the stack without the frames that are no code; often stack_index itself */
	uint32_t sound_index;
};

/* One file, for all processes that map it. Its index is name_question.image. */
struct symbolizer_image {
	struct name_facts *facts; /* NULL: none, or not known yet */
	bool known;
};

struct symbolizer {
	struct symbolizer_options options;
	VEC(struct symbolizer_process) processes; /* parallel to trace.processes */
	/* every distinct sampled (process, address); item 0 unused */
	VEC(struct symbolizer_hit_entry) hits;
	VEC(struct symbolizer_pair) pairs;   /* item 0 unused */
	VEC(struct symbolizer_image) images; /* item 0 unused */
	VEC(uint32_t) waiting;               /* indexes of entries without an answer yet */
	VEC(uint64_t) frames;                /* scratch */
	VEC(uint64_t) previous;              /* the last stack that was processed */
	uint32_t previous_process;           /* its process; 0: none */
	struct map hit_index;                /* hash of (process, address) -> hits */
	struct map pair_index;               /* hash of (process, stack, epoch) -> pairs */
	struct map image_index;              /* file identity -> images */
	/* hash of (mapping id, begin) of a written symbol -> the mapping id's low half */
	struct map symbol_index;
	/* names kernel addresses; NULL: not available to this process */
	struct kernel_symbols *kernel_asked;
	uint64_t kernel_mapping_id;
	enum source_state kernel_source; /* of kernel_asked */
	/* the recorder's own vdso, used for all processes; NULL: none */
	struct symbol_file *vdso;
	enum source_state vdso_source;
	/* the symbol worker; NULL until the first question */
	struct symbol_worker *worker;
	/* hash of a question -> 1, until its answer arrives */
	struct map asked;
	/* used by the current pass, and some of earlier passes */
	VEC(struct name_answer *) answers;
	struct map answer_index; /* hash of a question -> answers, plus one */
	uint64_t maps_asked;     /* number of the last ASK_MAPS question */
	bool asking_ended;       /* questions without an answer will not get one */
	/* each kernel lookup needs CAP_BPF (before Linux 5.19) */
	bool kernel_needs_right;
	uint32_t memory_process_count; /* processes with symbolizer_process.from_memory */
	uint32_t memories_open;        /* processes in CODE_MEMORY_OPEN */
	uint64_t code_size_bytes;      /* machine code that was written */
	uint32_t code_count;           /* bodies with it */
	uint32_t code_refused;         /* bodies without: not readable, removable, too large */
	uint64_t next_id;              /* of mappings, symbols and metadata */
	/* frames of all samples, counted again for each sample; complete after symbolizer_finish() */
	uint64_t frames_total;
	uint64_t frames_unnamed[UNNAMED_CAUSE_COUNT];
	struct bytes text; /* scratch */
	struct bytes payload;
	/* the memory limit was reached: no more addresses are named */
	bool full;
	/* files of targets were skipped because the kernel offers no safe way to open them */
	bool files_skipped;
};

/* The state of a process; NULL without memory. Valid until the next process is added. */
struct symbolizer_process *symbolizer_process(struct symbolizer *symbolizer, uint32_t process);

#endif
