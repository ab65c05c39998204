/*
 * Opens the files that contain names, caches their symbol tables, and looks up names in them.
 *
 * A question names an image, an offset in it, and where to find the image; the answer contains the
 * symbol at that offset. When the cached tables grow too large, the least recently used ones are
 * dropped; a later question reads them again. The module also reads the files that other runtimes
 * write for perf (/tmp/perf-PID.map, jitdump), and looks up kernel addresses in /proc/kallsyms.
 *
 * The functions are slow (they read and parse files) and not thread-safe: symbol_worker.h runs them in
 * a separate thread.
 */
#ifndef SPOOR_SYMBOLIZE_NAME_TABLES_H
#define SPOOR_SYMBOLIZE_NAME_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "image/elf.h"

struct box;
struct codemap;
struct name_tables;

enum name_question_kind {
	ASK_SYMBOL, /* the ELF symbol that covers `place`, a file offset */
	ASK_METHOD, /* the method of a precompiled managed image that covers `place` */
	ASK_MAPS,   /* all symbols that a process has written for perf */
	ASK_KERNEL, /* the kernel symbol that covers `place`, an address */
};

struct name_question {
	struct name_question *next;
	enum name_question_kind kind;
	/* the caller's number of the file: equal numbers mean the same file */
	uint32_t image;
	/* with ASK_MAPS any value that identifies the question for the caller */
	uint64_t place;
	/* A process that maps the image, and the mapping. */
	uint32_t pid;
	uint32_t inner_pid;
	uint64_t begin;
	uint64_t end;
	uint64_t inode; /* 0: unknown */
	bool ended;     /* the process had ended when the question was created */
	bool wants_facts;
	/* May be NULL for ASK_MAPS and ASK_KERNEL, which do not concern an image. */
	char *path;     /* owned; "" for none */
	char *build_id; /* owned; hexadecimal, "" if unknown */
};

/* The properties that identify an ELF image. */
struct name_facts {
	uint64_t text_vaddr;
	uint64_t text_offset;
	char build_id[2 * ELF_BUILD_ID_MAX + 1]; /* hexadecimal */
	char debug_link[ELF_DEBUG_LINK_MAX];
};

struct name_answer {
	struct name_answer *next;
	enum name_question_kind kind;
	uint32_t image;
	uint64_t place;
	int error; /* negative errno if the file could not be opened; else 0 */
	bool found;
	bool bounds_only; /* no symbol; begin and size are of the function, its name is made up */
	bool skipped;     /* a file was not opened because the kernel offers no safe way */
	uint64_t begin;   /* file offset, or kernel address */
	uint64_t size_bytes;
	char *name;               /* owned; demangled; for a kernel symbol with its module */
	struct name_facts *facts; /* owned; NULL: not requested, or no ELF image */
	struct codemap *codemap;  /* owned; of ASK_MAPS; NULL: none */
	/* used by symbol_worker.c: goes back to the thread that allocated it */
	struct name_question *question;
};

/* Copies its arguments. NULL without memory. */
struct name_tables *name_tables_new(const struct box *box, const char *const *symbol_paths);

/*
 * Reads the kernel's symbols now, while the process still has the right to; otherwise the first
 * ASK_KERNEL question reads them.
 */
void name_tables_open_kernel(struct name_tables *tables);

/* Answers one question; overwrites *answer. A lack of memory is reported in answer->error. */
void name_tables_answer(struct name_tables *tables, const struct name_question *question,
	struct name_answer *answer);

/* Drops the least recently used tables until at most 4 MiB are left. */
void name_tables_make_room(struct name_tables *tables);

uint64_t name_tables_size_bytes(const struct name_tables *tables);
void name_tables_free(struct name_tables *tables);

/* A copy of the question that is in no list. NULL without memory. */
struct name_question *name_question_copy(const struct name_question *question);

void name_question_free(struct name_question *question);
void name_answer_free(struct name_answer *answer);

#endif
