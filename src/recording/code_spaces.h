/*
 * The executable mappings of processes as of the records that were just read from the rings: what the
 * stack unwinder needs at that moment. (The process table of a session is older: it follows the records
 * as they leave the reorder window.)
 *
 * A process is read from /proc at its first sample, or follows from its fork and exec records. All zero
 * is an empty table, but for `proc` and `strings`, which the caller sets, and `changed` with its `user`.
 */
#ifndef SPOOR_RECORDING_CODE_SPACES_H
#define SPOOR_RECORDING_CODE_SPACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct proc_reader;
struct strtab;

struct code_mapping {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t file_offset;
	uint64_t device;
	uint64_t inode;
	uint32_t path;     /* strtab */
	uint32_t build_id; /* strtab; 0: unknown */
	uint32_t image;    /* the user's number of the file; 0: not asked yet */
};

#define CODE_SPACE_OUTER_MAX 16u

/* A frame at the start of threads, and the one that is always its caller. */
struct outer_frame {
	uint64_t address;
	uint64_t caller;
};

struct code_space {
	uint32_t pid; /* 0: a free slot */
	/* not 0; another one when all its code changes, and at any change if it is shared */
	uint16_t number;
	bool shared; /* a child or parent has the same number */
	bool ended;
	uint64_t read_ns;                  /* older records are included already */
	VEC(struct code_mapping) mappings; /* by address; no two overlap */
	/* the user's, emptied with the mappings */
	struct outer_frame outer[CODE_SPACE_OUTER_MAX];
	uint32_t outer_count;
};

/*
 * Other code may be at the addresses from `begin` to `end` of a process. They had a mapping before: rows for
 * unwinding that were made for them do not hold any more.
 */
typedef void code_change_fn(void *user, const struct code_space *space, uint64_t begin,
	uint64_t end);

struct code_spaces {
	struct proc_reader *proc; /* borrowed, as is strings */
	struct strtab *strings;
	code_change_fn *changed; /* NULL: changes are not reported */
	void *user;
	VEC(struct code_space) spaces; /* item 0 unused */
	VEC(uint32_t) free;
	VEC(uint32_t) ended; /* spaces to drop after the next pass */
	/* items of `ended` with a lower index are dropped after the current pass already */
	uint32_t ended_before;
	struct map by_pid;
	uint32_t mapping_count;
	uint16_t last_number;
	bool numbers_used_up; /* set when numbers begin again: rows of old ones are to be forgotten */
};

/* Records of the kernel, of each ring in order of time. */
void code_spaces_map(struct code_spaces *spaces, uint32_t pid, const struct code_mapping *mapping,
	uint64_t time_ns);
void code_spaces_fork(struct code_spaces *spaces, uint32_t pid, uint32_t parent, uint64_t time_ns);
void code_spaces_exec(struct code_spaces *spaces, uint32_t pid, uint64_t time_ns);
void code_spaces_exit(struct code_spaces *spaces, uint32_t pid);

/* All rings were read once more: drops processes that had ended before. */
void code_spaces_pass(struct code_spaces *spaces);

/* The process's space, read from /proc if it is not known; NULL without memory. Borrowed until the next call. */
struct code_space *code_spaces_get(struct code_spaces *spaces, uint32_t pid);

/*
 * The mapping that covers the address. If there is none, /proc is read again, unless that was done
 * within the last milliseconds. NULL: none covers it.
 */
struct code_mapping *code_spaces_find(struct code_spaces *spaces, struct code_space *space,
	uint64_t address);

void code_spaces_done(struct code_spaces *spaces);

#endif
