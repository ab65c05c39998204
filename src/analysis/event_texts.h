/*
 * Texts of runtime events, each distinct one once. They are compared as the events have them, in
 * UTF-16, so that only a new one is converted.
 */
#ifndef SPOOR_ANALYSIS_EVENT_TEXTS_H
#define SPOOR_ANALYSIS_EVENT_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/strtab.h"
#include "base/vec.h"

#define EVENT_TEXTS_RECENT 16u
#define EVENT_TEXTS_MARKS  8192u

/* All zero is empty. */
struct event_texts {
	uint32_t most; /* distinct texts that are kept; 0: all */
	/* indexes of texts that came lately and often come again, by their size and their end */
	uint32_t recent[EVENT_TEXTS_RECENT];
	bool overflows; /* there were more, whose index is 0 */
	/* a set of marks, one of each text that is kept: a text without its mark is not among them */
	uint64_t marks[EVENT_TEXTS_MARKS / 64];
	struct strtab raw;
	struct arena arena;
	VEC(const char *) texts; /* item i: of index i + 1 */
};

/* *ret_index: 0 for the empty text, and beyond `most`. 0, or -ENOMEM. */
int event_texts_add(struct event_texts *texts, const uint8_t *units, size_t unit_count,
	uint32_t *ret_index);

/* Valid UTF-8; "" for 0. */
const char *event_texts_get(const struct event_texts *texts, uint32_t index);

void event_texts_done(struct event_texts *texts);

#endif
