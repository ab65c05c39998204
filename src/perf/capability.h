/*
 * What this machine and this user can record: found by trying. Every try opens an event and closes it again.
 */
#ifndef SPOOR_PERF_CAPABILITY_H
#define SPOOR_PERF_CAPABILITY_H

#include <stddef.h>

enum capability_answer { CAPABILITY_NO, CAPABILITY_LIMITED, CAPABILITY_YES };

struct capability {
	const char *key;         /* "samples_own": stable, for JSON */
	const char *what;        /* "CPU samples, this user's processes" */
	enum capability_answer answer;
	char reason[256];        /* why not, or how far; may be empty */
	char remedy[256];        /* what to grant; may be empty */
};

#define CAPABILITY_COUNT 8u

/* Fills all CAPABILITY_COUNT rows. */
void capability_probe(struct capability ret_table[CAPABILITY_COUNT]);

#endif
