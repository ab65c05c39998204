/*
 * The system calls for input and output that `record --io` counted: by process, file, socket or pipe, and
 * call.
 *
 *   io_calls_event(&calls, &event)         for each IoCalls event
 *   io_calls_finish(&calls, &profile)      once: drops what the filter refuses, and sorts
 *   io_calls_done(&calls)
 *
 * The recorder writes sums every half second, so a selected time is exact to that. At most IO_CALLS_NAMES_MAX
 * names are kept; the others are rows without a name.
 */
#ifndef SPOOR_ANALYSIS_IO_CALLS_H
#define SPOOR_ANALYSIS_IO_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "trace/io_call.h"

struct profile;
struct runtime_event;

#define IO_CALLS_NAMES_MAX 20000u

struct io_calls_sum {
	uint64_t count;
	uint64_t errors;
	uint64_t again; /* of these, EAGAIN and EINPROGRESS: no more than "not yet" */
	uint64_t bytes;
	uint64_t small; /* calls of 1 to 16 bytes */
	uint64_t time_ns;
	uint64_t longest_ns;
};

struct io_calls_row {
	uint32_t process;
	uint32_t name; /* in `texts`; 0: not known */
	uint32_t call; /* in `texts`: "pread64" */
	enum io_thing thing;
	enum io_call_kind kind;
	int32_t descriptor; /* -1: several, or none */
	struct io_calls_sum sum;
	uint64_t last_error;    /* an errno; 0: none, or only EAGAIN and EINPROGRESS */
	uint64_t longest_at_ns; /* when it was counted, since the recording's begin */
	uint64_t thing_ns;      /* of all calls on the same thing; after io_calls_finish() */
};

/* A process with at least one call. */
struct io_calls_process {
	uint32_t process;
	uint32_t
		row_at; /* its rows, those of one thing together; the thing and the call with the most time first */
	uint32_t row_count;
	struct io_calls_sum all;
	struct io_calls_sum by_kind[IO_CALL_KINDS];
};

struct io_calls {
	struct strtab texts;
	VEC(struct io_calls_row) rows;
	VEC(struct io_calls_process) processes; /* most time first */
	struct map row_index;                   /* rows.items[i - 1] */
	struct map process_index; /* processes.items[i - 1]; until io_calls_finish() */
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int io_calls_event(struct io_calls *calls, const struct runtime_event *event);
void io_calls_finish(struct io_calls *calls, const struct profile *profile);

/* Whether the row is about the same file, socket or pipe as the one before it. */
bool io_calls_is_same_thing(const struct io_calls_row *a, const struct io_calls_row *b);

void io_calls_done(struct io_calls *calls);

#endif
