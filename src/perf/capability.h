/*
 * What this user can record on this machine, found by trying: each try opens an event and closes it
 * again.
 */
#ifndef SPOOR_PERF_CAPABILITY_H
#define SPOOR_PERF_CAPABILITY_H

#include <stddef.h>

enum capability_answer { CAPABILITY_NO, CAPABILITY_LIMITED, CAPABILITY_YES };

struct capability {
	const char *key;  /* "samples_own": a stable key for JSON */
	const char *what; /* "CPU samples, this user's processes" */
	enum capability_answer answer;
	char reason[256]; /* why not, or with which restriction; may be "" */
	char remedy[256]; /* what to grant; may be "" */
};

#define CAPABILITY_COUNT 8u

/* Fills all CAPABILITY_COUNT rows. */
void capability_probe(struct capability ret_table[CAPABILITY_COUNT]);

#endif
