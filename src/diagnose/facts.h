/*
 * The facts about processes that the rules of `spoor diagnose` judge: numbers, and places in the
 * program. Filled by facts_gather.h from a recording; observation_events.h adds what `spoor diagnose` observed of a running process.
 *
 *   struct facts facts = { 0 };
 *   facts_process(&facts, pid)               a row, added if it is new
 *   facts_set(row, FACT_cpus, 0.3)
 *   facts_expand(&facts, row, "{cpus} CPUs", &out)
 *   facts_done(&facts)
 */
#ifndef SPOOR_DIAGNOSE_FACTS_H
#define SPOOR_DIAGNOSE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

struct bytes;
struct symbolmap;

enum fact {
#define FACT(name, unit) FACT_##name,
#define WORD(name)
#include "diagnose/facts.def"
#undef FACT
#undef WORD
	FACT_KINDS
};

enum fact_word {
#define FACT(name, unit)
#define WORD(name) WORD_##name,
#include "diagnose/facts.def"
#undef FACT
#undef WORD
	WORD_KINDS
};

enum place_kind {
#define PLACE(name) PLACE_##name,
#include "diagnose/places.def"
#undef PLACE
	PLACE_KINDS
};

/* The user's own method, what it called, and a stack that shows it. */
struct place {
	uint32_t method;   /* strtab; 0: not known */
	uint32_t callee;   /* strtab; the running function, 0: none */
	uint32_t frame_at; /* in facts.frames, leaf first */
	uint32_t frame_count;
	double share; /* of what the place is about */
};

struct process_facts {
	uint32_t pid;
	uint32_t name;            /* strtab */
	uint32_t runtime_version; /* strtab; 0: no .NET, or not known */
	bool managed;
	bool observed; /* the recording has observations at it (observation_events.h) */
	bool known[FACT_KINDS];
	double numbers[FACT_KINDS];
	uint32_t words[WORD_KINDS]; /* strtab; 0: not known */
	struct place places[PLACE_KINDS];
};

struct facts {
	struct strtab texts;
	VEC(uint32_t) frames; /* strtab */
	VEC(struct process_facts) processes;
	struct map by_pid; /* to the position + 1 */
};

/* The process's row, added if it is new; NULL: no memory. Valid until another one is added. */
struct process_facts *facts_process(struct facts *facts, uint32_t pid);

/* NULL: no such row. */
struct process_facts *facts_find(const struct facts *facts, uint32_t pid);

/* As texts and JSON refer to it. */
const char *fact_name(enum fact fact);

void facts_set(struct process_facts *process, enum fact fact, double value);

/* Adds to a number, which counts from 0 if it was unknown. */
void facts_add(struct process_facts *process, enum fact fact, double value);

/* The text of a method's name without its arguments: findings are sentences. 0: no memory. */
uint32_t facts_add_method(struct facts *facts, const char *name);

/* What a finding shows of a place: functions of the symbolmap. */
struct place_stack {
	const uint32_t *functions; /* leaf first */
	uint32_t count;
	uint32_t method;
	uint32_t callee; /* the running function; may be `method` */
};

/* 0 or -ENOMEM. */
int facts_set_place(struct facts *facts, struct place *place, const struct symbolmap *names,
	const struct place_stack *stack);

/*
 * Appends the text with each {name} replaced by the fact or place of that name. False, and nothing
 * is appended: one of them is unknown.
 */
bool facts_expand(const struct facts *facts, const struct process_facts *process, const char *text,
	struct bytes *out);

void facts_done(struct facts *facts);

#endif
