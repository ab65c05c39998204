/*
 * Finds the few existing names that are most similar to a mistyped one.
 *
 *   struct nearest near = { .wanted = "Exception" };
 *   nearest_offer(&near, name);              each name that exists
 *   nearest_add(&near, &out);                "'Exception/Start' or 'Exception/Stop'"
 *
 * A name is similar if it contains the typed one, or if at most a third of the letters differ, in
 * the whole name or in its last part. Case, * and ? are ignored. The struct owns copies of the
 * names.
 */
#ifndef SPOOR_BASE_NEAREST_H
#define SPOOR_BASE_NEAREST_H

#include <stdbool.h>
#include <stdint.h>

struct bytes;

#define NEAREST_MAX      3u
#define NEAREST_NAME_MAX 200u /* longer names are not offered */

struct nearest {
	const char *wanted; /* borrowed */
	struct {
		char name[NEAREST_NAME_MAX];
		unsigned distance;
	} found[NEAREST_MAX]; /* nearest first; each name once */
	uint32_t count;
};

void nearest_offer(struct nearest *near, const char *name);

/* Appends the names, quoted and safe for a terminal. False: none is near, nothing was appended. */
bool nearest_add(const struct nearest *near, struct bytes *out);

#endif
