/*
 * A heap snapshot of one .NET process: requested, streamed while the collection runs, made into a
 * graph.
 *
 * Two sessions: one for the data, and, once it streams, one that triggers the collection. With a
 * single one the collection would run inside the opening of the session, before anything streams,
 * and a heap larger than the session's buffer would lose the events beyond it; with two sessions
 * the buffer only holds the events that the reader has not read yet. Both end by StopTracing
 * whatever happens, under the guard.
 *
 * A process that collects again and again sends events without end, and on a busy machine any event
 * can be lost. So the time-out counts from the last event of the snapshot's collection, a later
 * collection ends the wait, and HEAP_SNAPSHOT_LIMIT time-outs end everything. When blocks were lost
 * and the caller has not limited the buffer, one more attempt is made with a buffer of
 * HEAP_SNAPSHOT_RETRY_FACTOR times the size, where the target's memory has room for it.
 */
#ifndef SPOOR_HEAP_HEAP_SNAPSHOT_H
#define SPOOR_HEAP_HEAP_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct dotnet_target;
struct guard;
struct heap_graph;
struct pollfd;

#define HEAP_SNAPSHOT_BUFFER_MB    256u
#define HEAP_SNAPSHOT_RETRY_FACTOR 4u
#define HEAP_SNAPSHOT_LIMIT        10u /* time-outs that all attempts take together at most */

struct heap_snapshot_options {
	const struct dotnet_target *target;
	struct guard *guard;    /* may be NULL */
	uint32_t buffer_mb;     /* 0: HEAP_SNAPSHOT_BUFFER_MB, and more for a second attempt */
	uint64_t timeout_ns;    /* without an event of the collection; 0: 30 s */
	struct pollfd *watched; /* becomes ready: give up; may be NULL */
	/* about four times a second; may be NULL */
	void (*progress)(void *context, uint32_t objects, uint64_t bytes);
	void *context;
};

struct heap_snapshot_result {
	char runtime_version[64]; /* "10.0.12" */
	uint64_t bytes;           /* of the stream */
	uint64_t lost_events;     /* by the stream's sequence numbers */
	/* from the collection's begin to its end, by the times of its events; 0 unknown */
	uint64_t pause_ns;
	uint64_t took_ns;
	uint32_t collection; /* number of the collection */
	/* "" when it is complete, else a sentence part with the reason why it is not; static */
	const char *missing;
	uint32_t buffer_mb; /* of the last attempt */
	bool lost;          /* blocks were lost: a larger buffer may hold them */
	bool interrupted;   /* by `watched` */
};

/*
 * Fills `graph`, which is initialised and not resolved. 0 also for a snapshot that is not whole
 * (result->missing). Negative with a diagnosis when there is none at all: the process has exited,
 * cannot be reached, did not collect, or all objects were lost.
 */
int heap_snapshot_take(const struct heap_snapshot_options *options, struct heap_graph *graph,
	struct heap_snapshot_result *ret_result, struct diag *diag);

#endif
