/*
 * The library's one thread: it drains the rings, runs the sinks that live on it, and waits on file descriptors for whoever asks.
 *
 * All functions of a watch or a timer are called on this thread, without a lock. They must not block: while they run nothing is drained (a ring of
 * 4 MiB holds some 6 ms of a thread that fires as fast as it can). Watches and timers belong to their owner and are changed on the loop thread only
 * (loop_post() gets there).
 */
#ifndef SPOOR_LIB_PLATFORM_LOOP_H
#define SPOOR_LIB_PLATFORM_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop_watch {
	int fd;
	short events; /* POLLIN, POLLOUT; may be changed at any time; 0: only errors and the peer's end */
	void (*ready)(struct loop_watch *watch, short revents);
	struct loop_watch *next; /* the loop's */
	bool watched;
};

struct loop_timer {
	uint64_t due_ns; /* CLOCK_MONOTONIC */
	void (*expired)(struct loop_timer *timer); /* the timer is off by then; may set it again */
	struct loop_timer *next; /* the loop's */
	bool set;
};

/*
 * Starts the thread; 0 or a negative errno. In each turn it calls `pass`, which returns the time in ns after which the next call is due (UINT64_MAX: none).
 * loop_stop() ends the thread and waits for it; not on the thread itself.
 */
int loop_start(uint64_t (*pass)(void));
void loop_stop(void);
bool loop_running(void);
bool loop_is_self(void);

void loop_watch_add(struct loop_watch *watch);
void loop_watch_remove(struct loop_watch *watch); /* allowed inside ready() */
void loop_timer_set(struct loop_timer *timer, uint64_t due_ns);
void loop_timer_clear(struct loop_timer *timer);

/* Runs `function` on the loop thread, soon, in the order of the posts. Any thread. -ENOTCONN when the loop does not run, -ENOMEM. */
int loop_post(void (*function)(void *context), void *context);

/* The same, and waits until it has returned; on the loop thread it is called at once. */
int loop_call(void (*function)(void *context), void *context);

/* Any thread: the loop looks around now instead of at the end of its sleep. */
void loop_wake(void);

/* In the child of a fork(): forgets all of it. */
void loop_forget(void);

#endif
