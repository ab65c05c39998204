/* What managed.h reports to its caller. */
#ifndef SPOOR_RECORDING_MANAGED_OUTCOME_H
#define SPOOR_RECORDING_MANAGED_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "dotnet/reason.h"
#include "trace/notice_codes.h"

struct ipc_process_info;

#define MANAGED_RUNDOWNS_MAX 8u
#define MANAGED_HOLD_NS      UINT64_C(5000000000)

/*
 * The state of one process, reported when its names become known or cannot be obtained, and again
 * when that changes.
 */
struct managed_outcome {
	uint32_t process;
	bool reachable;
	const char *reason; /* part of a sentence; "" when reachable */
	enum reason_kind reason_kind;
	const struct ipc_process_info *info; /* NULL without an answer */
	const char *sessions;                /* opened sessions, one a line; "" for none */
	bool clock_measured;
	int64_t clock_offset_ns; /* its events' clock minus CLOCK_MONOTONIC */
	uint64_t clock_error_ns; /* maximum error of the offset */
};

typedef void managed_report(void *context, const struct managed_outcome *outcome);

/*
 * Reports an event that concerns all sessions: the guard ended them (NOTICE_GUARD), or they are not
 * guarded (NOTICE_UNGUARDED). `text` is a sentence. Sessions that the guard ended are being opened
 * again.
 */
typedef void managed_notice(void *context, enum notice_code code, const char *text);

/* A sample that a runtime took: managed_sample(). */
typedef void managed_sampled(void *context, uint32_t process, uint32_t tid, uint64_t time_ns,
	uint32_t stack, bool runs);

#endif
