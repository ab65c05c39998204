/* A recording that `spoor symbols` has read: what it lacks, and the names that are here for it. */
#ifndef SPOOR_CLI_SYMBOLS_RECORDING_H
#define SPOOR_CLI_SYMBOLS_RECORDING_H

#include <stdbool.h>

#include "analysis/missing_symbols.h"
#include "symbolize/symbol_cache.h"
#include "symbols/line_names.h"
#include "symbols/symbol_names.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

struct symbols_recording {
	struct trace trace;
	struct symbolmap map;
	struct missing_symbols missing;
	struct symbol_names found;
	struct symbol_cache cache;
	struct line_names lines;
};

/*
 * EXIT_DONE, or the failure was printed and this is the exit code; symbols_recording_close() in
 * both cases. `make_cache`: makes the cache's folder if there is none, and needs it.
 */
int symbols_recording_open(struct symbols_recording *ret_recording, const char *path,
	bool make_cache);

/* Finds the source lines of the opened recording too. -ENOMEM is printed; its exit code. */
int symbols_recording_find_lines(struct symbols_recording *recording);
void symbols_recording_close(struct symbols_recording *recording);

#endif
