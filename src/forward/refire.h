/*
 * Fires the events of a stream again in this process, with libspoor, whose loggers and sessions
 * pass them on. Each kind of event is registered when its first event comes, with the fields that
 * the source described; or, as JSON, every event is one of six events that exist from the start.
 */
#ifndef SPOOR_FORWARD_REFIRE_H
#define SPOOR_FORWARD_REFIRE_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct refire;
struct schema;
struct trace;

/* The provider of the events of refire_new(true). */
#define REFIRE_JSON_PROVIDER "EventSource"

struct refire_counts {
	uint64_t fired;   /* given to libspoor */
	uint64_t unheard; /* no session or logger enabled the event */
	/*
	 * whose payload does not fit its description, or which libspoor cannot express: fired
	 * with its payload as JSON in a field
	 */
	uint64_t as_json;
	uint64_t failed; /* neither */
	uint32_t kinds;
};

/* libspoor must have been started. NULL: no memory. */
struct refire *refire_new(bool json);

/*
 * One event of process `pid`. An origin is added to its fields: the process, the thread, the time
 * (CLOCK_MONOTONIC), and the activity ids where it has them.
 */
void refire_event(struct refire *refire, const struct trace *trace, const struct schema *schema,
	const struct event *event, uint32_t pid);

void refire_count(const struct refire *refire, struct refire_counts *ret_counts);
void refire_free(struct refire *refire);

#endif
