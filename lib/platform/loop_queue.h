/*
 * What the two loops, loop.c and loop_direct.c, wait for: posted functions and timers. The caller
 * holds its lock where posts are touched; timers are of the loop thread.
 */
#ifndef SPOOR_LIB_PLATFORM_LOOP_QUEUE_H
#define SPOOR_LIB_PLATFORM_LOOP_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct loop_timer {
	uint64_t due_ns; /* CLOCK_MONOTONIC */
	/* the timer is not set when this is called; may set it again */
	void (*expired)(struct loop_timer *timer);
	struct loop_timer *next; /* set by the loop */
	bool set;
};

/* All zero is an empty queue. */
struct loop_posts {
	struct posted_call *first;
	struct posted_call *newest;
};

/*
 * Makes a post. `done` is set after the call; NULL: no thread waits for it. NULL: no memory. A post
 * that is not added is freed with free().
 */
struct posted_call *loop_post_make(void (*function)(void *context), void *context, bool *done);
void loop_posts_add(struct loop_posts *posts, struct posted_call *post);

/* Calls all posts, without the lock, and frees them; `changed` is signalled for threads that wait. */
void loop_posts_run(struct loop_posts *posts, pthread_mutex_t *lock, pthread_cond_t *changed);

void loop_timers_set(struct loop_timer **timers, struct loop_timer *timer, uint64_t due_ns);
void loop_timers_clear(struct loop_timer **timers, struct loop_timer *timer);

/* The time until the next timer; 0: one has expired; UINT64_MAX: there is none. */
uint64_t loop_timers_left_ns(const struct loop_timer *timers, uint64_t now_ns);

/* Calls the function of each expired timer; these may set and clear timers. Returns the time left. */
uint64_t loop_timers_run(struct loop_timer **timers);

#endif
