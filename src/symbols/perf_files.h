/*
 * A recording as files for perf: its CPU samples as perf.data, and for each process with recorded machine
 * code (record --code) a jitdump with names and source lines.
 *
 *   perf_files_sample(&files, event)                 each event of the recording
 *   perf_files_finish(&files, &map, &lines, &diag)   after the recording was read
 *
 * The caller opens files.samples (formats/perf_data_write.h), and makes the folder.
 */
#ifndef SPOOR_SYMBOLS_PERF_FILES_H
#define SPOOR_SYMBOLS_PERF_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/perf_data_write.h"

struct diag;
struct event;
struct line_names;
struct symbol_cache;
struct symbolmap;
struct trace;

struct perf_files {
	struct trace *trace;
	struct perf_data samples;
	const char *folder;               /* absolute */
	const struct symbol_cache *cache; /* of PDBs; NULL: not searched */
	const uint32_t *pids;             /* only these processes */
	uint32_t pid_count;               /* 0: all */
	/* results */
	uint64_t sample_count;
	uint32_t dump_count;         /* jitdumps */
	uint32_t body_count;         /* bodies of code in them */
	uint32_t with_line_count;    /* of these: with source lines */
	uint32_t without_code_count; /* sampled bodies of these processes whose code is not known */
};

void perf_files_sample(struct perf_files *files, const struct event *event);

/* `lines` is empty, and of the same trace; names are in long form. */
int perf_files_finish(struct perf_files *files, struct symbolmap *map, struct line_names *lines,
	struct diag *diag);

#endif
