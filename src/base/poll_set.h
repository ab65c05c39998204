/*
 * The wait of a poll loop: descriptors, and the time until which none of them need become ready.
 *
 *   struct poll_set set = { 0 };
 *   for (;;) {
 *           poll_set_begin(&set, until_ns);               empties the set
 *           thing_poll(thing, &set);                      each part adds its descriptors and its deadline:
 *                   poll_set_add(set, fd, POLLIN);
 *                   poll_set_wake(set, deadline_ns);
 *           poll_set_add_callers(&set, fds, fd_count);    optional
 *           now_ns = poll_set_wait(&set);
 *           thing_advance(thing, now_ns);                 each part takes all steps that need no waiting
 *   }
 *   poll_set_done(&set);
 *
 * The set is built anew for each wait. Most parts try each step and need not know which descriptor
 * is ready; others keep the number that poll_set_add() returned. No error needs handling: if memory
 * or the kernel fails, the wait lasts POLL_SET_RETRY_MS at most and reports no descriptor, so a
 * loop polls by time. Times are CLOCK_MONOTONIC in nanoseconds. All zero is empty, and one thread
 * uses it at a time. Descriptors belong to the caller.
 */
#ifndef SPOOR_BASE_POLL_SET_H
#define SPOOR_BASE_POLL_SET_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define POLL_SET_RETRY_MS 10

struct poll_set {
	VEC(struct pollfd) fds; /* revents: of the last wait */
	uint64_t wake_ns;       /* when the wait ends at the latest */
	int ready;              /* number of ready descriptors at the end of the last wait */
	bool lacks_memory;      /* a descriptor is missing */
	/* of poll_set_add_callers() */
	struct pollfd *callers;
	size_t caller_count;
	uint32_t caller_first;
};

/* An empty set, whose wait ends at `until_ns` at the latest; UINT64_MAX: no limit. */
void poll_set_begin(struct poll_set *set, uint64_t until_ns);

/* The number of the descriptor for poll_set_revents(). A negative descriptor is never ready. */
uint32_t poll_set_add(struct poll_set *set, int fd, short events);

/* Descriptors of the caller, borrowed, whose revents the wait sets. Once for each wait. */
void poll_set_add_callers(struct poll_set *set, struct pollfd *fds, size_t count);

/* The wait ends no later than this. */
void poll_set_wake(struct poll_set *set, uint64_t time_ns);

/* Returns the time when a descriptor is ready, the time has come or a signal handler has run. */
uint64_t poll_set_wait(struct poll_set *set);

/* The events of a descriptor in the last wait; 0: it was not ready. */
short poll_set_revents(const struct poll_set *set, uint32_t number);

void poll_set_done(struct poll_set *set);

/*
 * The revents; 0 after the timeout (-1: none) or a signal handler; POLLERR: the kernel cannot wait.
 * May be called in a signal handler.
 */
short poll_one(int fd, short events, int timeout_ms);

#endif
