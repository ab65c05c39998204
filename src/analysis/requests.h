/*
 * The HTTP requests that ASP.NET Core served, by route: from the pairs RequestStart and RequestStop
 * of Microsoft-AspNetCore-Server-Kestrel, which have the id of their request, or else of
 * Microsoft.AspNetCore.Hosting, which have the id of its activity. Of a process one of them counts.
 *
 *   requests_event(&requests, &event)             for each event, in file order
 *   requests_settle(&requests, &spans, end_ns)    once
 *   requests_finish(&requests, &profile)          once
 *   requests_done(&requests)
 *
 * A route is a method and a path whose parts with a digit are "*", because these tend to be ids. At
 * most REQUEST_ROUTES_MAX are kept; the others are one row with an empty route.
 */
#ifndef SPOOR_ANALYSIS_REQUESTS_H
#define SPOOR_ANALYSIS_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/durations.h"
#include "analysis/timeline.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

struct activity_spans;
struct profile;
struct runtime_event;
struct trace;

#define REQUEST_ROUTES_MAX 500u
/* A person notices the delay. */
#define REQUEST_SLOW_NS UINT64_C(500000000)

struct request_route {
	uint32_t process;
	uint32_t route;             /* in `routes`: "GET /orders" */
	struct durations durations; /* of the requests that ended */
	/* of all requests; of those that have not ended, the observed time */
	uint64_t slow_count;
	uint64_t slow_ns;
};

/* A process with at least one request. */
struct requests_process {
	uint32_t process;
	uint32_t provider; /* trace_text(): whose events count */
	uint32_t row_at;   /* its routes, longest total first */
	uint32_t row_count;
	uint64_t count;
	uint64_t unfinished; /* they had not ended at the end of the recording */
	/* of all requests; of those that have not ended, the observed time */
	uint64_t total_ns;
	uint64_t slow_count; /* lasted REQUEST_SLOW_NS or longer */
	uint64_t slow_ns;
	struct timeline line; /* requests begun, from the begin of the selected time */
};

struct request_begun {
	uint64_t id; /* hash of the request's id; 0: the place is free */
	uint64_t at_ns;
	uint32_t row;
	uint32_t next_free;
};

struct requests {
	struct strtab routes;
	VEC(struct request_route) rows;
	VEC(struct requests_process) processes; /* most requests first */
	struct map row_index;                   /* until requests_finish(), as the next ones */
	VEC(struct request_begun) begun;
	struct map open; /* begun.items[i - 1] */
	uint32_t free;   /* begun.items[free - 1] is the first free item; 0: none */
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int requests_event(struct requests *requests, const struct runtime_event *event,
	const struct trace *trace);
void requests_settle(struct requests *requests, const struct activity_spans *spans,
	uint64_t end_ns);
int requests_finish(struct requests *requests, const struct profile *profile);

void requests_done(struct requests *requests);

#endif
