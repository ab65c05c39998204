/* Which right is missing, and how to get it: perf_event_open(2) returns only EACCES or EPERM. */
#ifndef SPOOR_PERF_EXPLAIN_H
#define SPOOR_PERF_EXPLAIN_H

#include <stddef.h>
#include <stdint.h>

struct diag;
struct rights;

/* The value is the highest perf_event_paranoid that allows it to all users. */
enum explain_what {
	EXPLAIN_MACHINE = 0, /* the whole machine was refused */
	EXPLAIN_KERNEL = 1,  /* kernel code was refused, user code is allowed */
	EXPLAIN_ANY = 2,     /* not even the caller's own user code is allowed */
};

/* Returns `error`. */
int explain_rights(const struct rights *rights, enum explain_what what, int error,
	struct diag *diag);

/* For processes, which may also belong to another user. Returns `error`. */
int explain_target(const struct rights *rights, enum explain_what what, const uint32_t *pids,
	size_t pid_count, int error, struct diag *diag);

#endif
