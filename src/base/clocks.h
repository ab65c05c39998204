/*
 * The system's clocks in nanoseconds, and the time that is left until a deadline.
 *
 *   uint64_t deadline_ns = clock_monotonic_ns() + TIMEOUT_NS;
 *   struct timespec timeout = clock_left(deadline_ns, clock_monotonic_ns());
 *   ppoll(fds, count, &timeout, NULL);
 *
 * A deadline is a CLOCK_MONOTONIC time, which does not advance while the machine is suspended.
 * UINT64_MAX is a deadline that never arrives. The functions keep no state: any thread and any
 * signal handler may call them.
 */
#ifndef SPOOR_BASE_CLOCKS_H
#define SPOOR_BASE_CLOCKS_H

#include <stdint.h>
#include <time.h>

/* The time of a clock that every supported kernel has; 0 if the kernel refuses it. */
uint64_t clock_ns(clockid_t clock);

uint64_t clock_monotonic_ns(void);

/* Since 1970-01-01 00:00 UTC. */
uint64_t clock_utc_ns(void);

/* The timeout of ppoll(): exact, and zero once the deadline has passed. */
struct timespec clock_left(uint64_t deadline_ns, uint64_t now_ns);

/* The timeout of poll(), rounded up so that it never returns 0 too early; -1 for UINT64_MAX. */
int clock_left_ms(uint64_t deadline_ns, uint64_t now_ns);

#endif
