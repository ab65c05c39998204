/*
 * Reads what `xctrace export` of macOS writes of the table "time-profile": XML, one element a sample
 * (docs/formats/xctrace.md). Threads, processes, images and function names go into the trace's tables.
 * An address that the file has no name for, as of managed code, is named by the methods that the
 * trace has of other files.
 *
 *   xctrace_source_open(&in, &trace, &source, &diag);      as any source (trace/flow.h)
 *
 * Times begin with the recording, and have no date.
 */
#ifndef SPOOR_FORMATS_XCTRACE_READ_H
#define SPOOR_FORMATS_XCTRACE_READ_H

#include "trace/flow.h"

/* The file in a folder of scripts/collect-macos. */
#define XCTRACE_FILE_NAME "time-profile.xml"

extern const struct source_ops xctrace_source;

/* Takes the input over on success. `trace` outlives the source. 0 or a negative errno. */
int xctrace_source_open(struct input *in, struct trace *trace, struct source **ret_source,
	struct diag *diag);

#endif
