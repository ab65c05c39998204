/*
 * Names of managed code from the memory of .NET processes, for those whose runtime does not send
 * them: it has no diagnostics socket, ends before it answers, or is not to be asked.
 *
 *   memory_names_sign(names, pid, path)     a process maps a file: maybe one of a .NET runtime
 *   memory_names_sample(names, pid, ...)    a sample leaves its ring: each new address is read
 *   memory_names_exec(), memory_names_exit()
 *   memory_names_pass(names)                all rings were read: now code that may be freed is read
 *
 * A method that was found is put into the reorder window at the time of its sample (PENDING_CODE); from
 * there memory_names_take() passes it to the symbolizer. While the runtime may still answer, the
 * methods wait there (symbolize/seen_code.h), and are used only if it does not.
 *
 * Of a single-file program, precompiled methods are read in any case: its runtime does not report them,
 * and they are in no image file of their own.
 *
 * A method that is never freed is read once, at its first sampled address. Other code is read at the end of
 * each pass with a sample of it, and has a name only in intervals that the reads prove (passing_code.h).
 */
#ifndef SPOOR_RECORDING_MEMORY_NAMES_H
#define SPOOR_RECORDING_MEMORY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "code/clr_image.h"

struct clr_pages;
struct memory_process;
struct pending;
struct poll_set;
struct process_table;

struct memory_names {
	struct process_table *table; /* borrowed; set by the session */
	bool forced;                 /* no runtime is asked */
	struct clr_images images;
	struct clr_pages *pages; /* NULL until a process is read */
	VEC(struct memory_process *) list;
	struct map by_pid; /* pid -> index + 1 */
	uint64_t exec_ns;  /* when the last program was started */
	uint64_t method_count;
	uint32_t refused_count; /* processes that may not be read */
};

/* `context` is the struct memory_names: for process_table.mapped. */
void memory_names_sign(void *context, uint32_t pid, const char *path);

/* Whether a .NET runtime was noticed in the process. */
bool memory_names_has(const struct memory_names *names, uint32_t pid);

/* `frames` are addresses of user code and of the kernel; the latter are skipped. */
void memory_names_sample(struct memory_names *names, uint32_t pid, uint64_t time_ns,
	const uint64_t *frames, uint32_t count);

void memory_names_exec(struct memory_names *names, uint32_t pid);
void memory_names_exit(struct memory_names *names, uint32_t pid);
void memory_names_pass(struct memory_names *names);

/* The rings are to be read soon while a process may end before its runtime answers. */
void memory_names_await(const struct memory_names *names, struct poll_set *set);

/* An item of kind PENDING_CODE, which is not valid after the call. */
void memory_names_take(struct memory_names *names, struct pending *item);

/* Whether methods of this process are read from its memory; false once that was refused. */
bool memory_names_reads(struct memory_names *names, uint32_t pid);

size_t memory_names_size_bytes(const struct memory_names *names);
void memory_names_done(struct memory_names *names);

#endif
