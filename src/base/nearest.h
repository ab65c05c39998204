/*
 * The few names that are most like one that was typed and does not exist.
 *
 *   struct nearest near = { .wanted = "Exception" };
 *   nearest_offer(&near, name);              each name that exists
 *   nearest_add(&near, &out);                "'Exception/Start' or 'Exception/Stop'"
 *
 * A name is like another if it has it as a part, or if at most a third of the letters differ, of the whole name or of its last part. Capitals count as small
 * letters; * and ? of a pattern are skipped. The struct owns copies of the names and needs no release.
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

/* Appends the names, quoted and safe for a terminal. False: no name is near, nothing was appended. */
bool nearest_add(const struct nearest *near, struct bytes *out);

#endif
