/*
 * Which events the options --provider and --event choose, by patterns of their names.
 *
 *   event_choice_init(&choice, &trace, providers, events);      NULL: no such option
 *   ... event_choice_has(&choice, event) for each event ...
 *   event_choice_say_unmatched(&choice);                        which pattern no event has
 *   event_choice_done(&choice);
 *
 * The trace and the texts are borrowed. All zero chooses every event after event_choice_init().
 */
#ifndef SPOOR_CLI_EVENT_CHOICE_H
#define SPOOR_CLI_EVENT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/nearest.h"
#include "base/vec.h"

struct event;
struct texts;
struct trace;

/* One --provider or --event, and the names in the file that are like it. */
struct event_pattern {
	struct nearest near;
	bool event; /* of an event, not a provider */
	bool matched;
};

struct event_choice {
	const struct trace *trace;
	const struct texts *providers; /* NULL: all */
	const struct texts *events;    /* NULL: all */
	VEC(struct event_pattern) patterns;
	VEC(uint8_t) by_schema; /* enum decision */
	struct bytes name;      /* scratch */
};

/* 0 or -ENOMEM. */
int event_choice_init(struct event_choice *choice, const struct trace *trace,
	const struct texts *providers, const struct texts *events);

/* Called for each event of the file, to find the names in it. */
bool event_choice_has(struct event_choice *choice, const struct event *event);

/* Prints each pattern that no event has, with names like it. True if there is one. */
bool event_choice_say_unmatched(const struct event_choice *choice);

void event_choice_done(struct event_choice *choice);

#endif
