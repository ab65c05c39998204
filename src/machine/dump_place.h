/*
 * The file for the dump of a process: a path as that process sees it, written by its runtime.
 *
 *   dump_place_open(&place, &question, &diag);      checks the folder; nothing is sent to the process
 *   ... the runtime writes to place.path ...
 *   dump_place_keep(&place, &size, &diag);          the dump gets its name; an earlier file there becomes NAME.old
 *   dump_place_close(&place);                       always; a dump that was not kept is removed
 *
 * The folder is opened below the root of the process. The runtime writes under a random name there,
 * so that no link, pipe or file that waits at the dump's own name is opened by it. Names are given
 * and taken with the caller's own rights.
 */
#ifndef SPOOR_MACHINE_DUMP_PLACE_H
#define SPOOR_MACHINE_DUMP_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/output_file.h"

#define DUMP_PATH_ROOM 4096u

struct diag;

struct dump_place_question {
	uint32_t pid;
	uint32_t uid;      /* of the process: an earlier dump of this user may be replaced */
	const char *path;  /* absolute, as the process sees it */
	bool crash_report; /* FILE.crashreport.json beside it */
};

struct dump_place {
	struct output_file core;
	struct output_file report;
	/* for the runtime, which replaces what follows a percent sign: the folder's are doubled */
	char path[DUMP_PATH_ROOM];
};

/* On failure *ret_place is closed. */
int dump_place_open(const struct dump_place_question *question, struct dump_place *ret_place,
	struct diag *diag);

/* -ENOENT: the runtime wrote none there. */
int dump_place_keep(struct dump_place *place, uint64_t *ret_size_bytes, struct diag *diag);

/* False: the file does not exist (yet). */
bool dump_place_is_written(const struct dump_place *place);

void dump_place_close(struct dump_place *place);

#endif
