/*
 * The commands that processes sent to databases, by target and statement: spans of drivers (an
 * ActivitySource whose spans have tags "db."), commands of Entity Framework, and those of SqlClient.
 *
 *   databases_event(&databases, &event, trace)     for each event, in file order
 *   databases_settle(&databases, end_ns)           once
 *   databases_finish(&databases, &profile)         once; and tally_finish() for the tally
 *   databases_done(&databases)
 *
 * One command may be announced by two sources, such as Entity Framework and the driver below it: it
 * is in a row of each. At most DATABASE_TEXTS_MAX statements are kept; the others are one row with
 * an empty statement.
 */
#ifndef SPOOR_ANALYSIS_DATABASES_H
#define SPOOR_ANALYSIS_DATABASES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/durations.h"
#include "analysis/tally.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

struct profile;
struct runtime_event;
struct trace;

#define DATABASE_TEXTS_MAX 1000u
/* Of a statement, in bytes. */
#define DATABASE_STATEMENT_MAX 400u

enum database_source {
	DATABASE_SPANS, /* of the driver: an ActivitySource */
	DATABASE_ENTITY_FRAMEWORK,
	DATABASE_SQL_CLIENT, /* its EventSource or its DiagnosticListener */
	DATABASE_SOURCES
};

struct database_row {
	uint32_t process;
	uint32_t target;    /* in `texts`: "ledger.example:5432/books (postgresql)" */
	uint32_t statement; /* in `texts`: on one line; 0: others, or not known */
	enum database_source source;
	uint64_t failed;            /* of those that ended */
	uint64_t unfinished;        /* they had not ended at the end of the recording */
	uint64_t unfinished_ns;     /* that these lasted at least */
	struct durations durations; /* of those that ended */
};

/* A process with at least one command. */
struct databases_process {
	uint32_t process;
	uint32_t row_at; /* its rows, by source and target, those that lasted longest first */
	uint32_t row_count;
	uint64_t count; /* commands that began, of all sources */
};

struct database_begun {
	uint64_t id; /* 0: the place is free */
	uint64_t at_ns;
	uint64_t from_ns; /* see tally_amount */
	uint32_t row;
	uint32_t stack; /* of event_stacks; 0 none */
	uint32_t next_free;
};

struct databases {
	struct strtab texts;
	VEC(struct database_row) rows;
	VEC(struct databases_process) processes; /* most commands first */
	struct tally tally;                      /* key: kind = source, text, detail = statement */
	VEC(struct database_begun) begun;        /* until databases_settle(), as the next ones */
	struct map row_index;
	struct map open; /* begun.items[i - 1] */
	uint32_t free;   /* begun.items[free - 1] is the first free item; 0: none */
};

/* Of the events of trace/source_events.def. 0, or -ENOMEM. Payloads that are too short are ignored. */
int databases_event(struct databases *databases, const struct runtime_event *event,
	const struct trace *trace);
int databases_settle(struct databases *databases, uint64_t end_ns);
void databases_finish(struct databases *databases, const struct profile *profile);

/* "Entity Framework": a constant text. */
const char *database_source_words(enum database_source source);

void databases_done(struct databases *databases);

#endif
