/*
 * The library's one thread: it drains the rings, runs the sinks, and waits for file descriptors of
 * other parts.
 *
 * The functions of watches and timers are called on this thread, without a lock held. They must not
 * block: meanwhile no ring is drained, and a thread that fires as fast as it can fills a ring of 4
 * MiB within 6 ms. Watches and timers are owned by the caller and changed on the loop thread only
 * (loop_post() runs a function there).
 */
#ifndef SPOOR_LIB_PLATFORM_LOOP_H
#define SPOOR_LIB_PLATFORM_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/platform/loop_queue.h"

struct loop_watch {
	int fd;
	/* POLLIN, POLLOUT; may be changed at any time; 0: only errors and the end of the peer */
	short events;
	void (*ready)(struct loop_watch *watch, short revents);
	struct loop_watch *next; /* set by the loop */
	bool watched;
};

/*
 * Starts the thread; 0 or a negative errno. In each turn it calls `pass`, which returns the time in
 * ns after which the next call is due (UINT64_MAX: none). loop_stop() ends the thread and waits for
 * it; not on the thread itself.
 */
int loop_start(uint64_t (*pass)(void));
void loop_stop(void);
bool loop_running(void);
bool loop_is_self(void);

void loop_watch_add(struct loop_watch *watch);
void loop_watch_remove(struct loop_watch *watch); /* allowed inside ready() */
void loop_timer_set(struct loop_timer *timer, uint64_t due_ns);
void loop_timer_clear(struct loop_timer *timer);

/*
 * Runs `function` on the loop thread, in the order of the posts. Any thread. -ENOTCONN: the loop
 * does not run; -ENOMEM.
 */
int loop_post(void (*function)(void *context), void *context);

/*
 * As loop_post(), and waits until `function` has returned. On the loop thread `function` is called
 * directly.
 */
int loop_call(void (*function)(void *context), void *context);

/* Ends the sleep of the loop thread, so that it makes a pass now. Any thread, signal handlers. */
void loop_wake(void);

/* In the child of fork(): closes the fds and forgets watches, timers and posts. */
void loop_forget(void);

#endif
