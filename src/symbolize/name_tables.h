/*
 * The files that names come from: opened, kept, asked.
 *
 * A question names an image and a place in it, and says where the image is to be found; the answer has the symbol there. Tables of images are a cache:
 * when they grow large, those that were not asked for longest go, and come again with the next question. Also answered here: what other
 * runtimes leave behind for perf (/tmp/perf-PID.map, jitdump), and kernel addresses from /proc/kallsyms.
 *
 * Slow (files are read and parsed), and not for two threads at once: name_desk.h gives it a thread of its own.
 */
#ifndef SPOOR_SYMBOLIZE_NAME_TABLES_H
#define SPOOR_SYMBOLIZE_NAME_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/elf.h"

struct box;
struct codemap;
struct name_tables;

enum name_question_kind {
	ASK_SYMBOL, /* the ELF symbol that covers `place`, an offset in the file */
	ASK_METHOD, /* the same of a precompiled managed image */
	ASK_MAPS,   /* all that a process has left for perf */
	ASK_KERNEL, /* the kernel's symbol that covers `place`, an address */
};

struct name_question {
	struct name_question *next;
	struct name_answer *spent; /* the desk's: answers that go back to whoever allocated them */
	enum name_question_kind kind;
	uint32_t image;       /* the asker's number of the file: the same number is the same file */
	uint64_t place;       /* with ASK_MAPS whatever the asker wants to know it by */
	/* A process that maps it, and the mapping. */
	uint32_t pid;
	uint32_t inner_pid;
	uint64_t begin;
	uint64_t end;
	uint64_t inode;       /* 0: not known */
	bool ended;           /* the process, when the question was asked */
	bool wants_facts;
	/* Of a file, so ASK_MAPS and ASK_KERNEL may have NULL here. */
	char *path;           /* owned; "" none */
	char *build_id;       /* owned; hexadecimal, "" not known */
};

/* What identifies an ELF image. */
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
	int error;               /* why there is no file to look into; 0 there is */
	bool found;
	bool skipped;            /* a file could not be opened safely here, so it was not */
	uint64_t begin;          /* offset in the file, or address in the kernel */
	uint64_t size_bytes;
	char *name;              /* owned; readable, of the kernel with its module */
	struct name_facts *facts; /* owned; NULL not asked for, or no ELF image */
	struct codemap *codemap; /* owned; of ASK_MAPS; NULL none */
	struct name_question *question; /* the desk's: goes back to whoever allocated it */
};

/* What is given is copied. NULL: no memory. */
struct name_tables *name_tables_new(const struct box *box, const char *const *symbol_paths);

/* Reads the kernel's names, which is else done with the first question for one: while the right is there. */
void name_tables_open_kernel(struct name_tables *tables);

/* `answer` is zeroed before. No memory is an error like any other. */
void name_tables_answer(struct name_tables *tables, const struct name_question *question,
	struct name_answer *answer);

/* Drops tables until few are left. */
void name_tables_make_room(struct name_tables *tables);

uint64_t name_tables_size_bytes(const struct name_tables *tables);
void name_tables_free(struct name_tables *tables);

/* The same question, in no list. NULL: no memory. */
struct name_question *name_question_copy(const struct name_question *question);

void name_question_free(struct name_question *question);
void name_answer_free(struct name_answer *answer);

#endif
