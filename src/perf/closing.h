/*
 * Closes perf events without waiting for the kernel.
 *
 * The last close of a tracepoint's event waits until no CPU can still be in the tracepoint: up to 20 s
 * on a machine whose CPUs switch between threads all the time. A helper process holds the events
 * meanwhile, so that the caller's own close returns immediately, and so does its exit.
 */
#ifndef SPOOR_PERF_CLOSING_H
#define SPOOR_PERF_CLOSING_H

#include <stddef.h>

#define CLOSING_WAIT_MS 250

/*
 * Closes `fds`. If the kernel takes longer than CLOSING_WAIT_MS, the helper, which is no child of the
 * caller, ends later. Without a helper it waits for the kernel.
 */
void closing_finish(const int *fds, size_t count);

#endif
