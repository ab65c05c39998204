/*
 * The library's thread without file descriptors, in place of loop.c: for a library that has no
 * sessions and no server (lib/start/start_direct.c).
 */
#include "lib/platform/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/platform/platform.h"

/* The longest sleep, because the clock of pthread_cond_timedwait() may be set. */
#define SLEEP_NS UINT64_C(100000000)
#define SECOND   UINT64_C(1000000000)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running; /* atomic */
	bool ends;
	struct loop_posts posts;
	struct loop_timer *timers; /* of the loop thread */
} loop = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

/* With the lock held. */
static void sleep_locked(void)
{
	uint64_t left = loop_timers_left_ns(loop.timers, platform_now_ns());
	struct timespec until;

	if (!left || loop.posts.first || loop.ends)
		return;
	left = left < SLEEP_NS ? left : SLEEP_NS;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	left += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(left / SECOND);
	until.tv_nsec = (long)(left % SECOND);
	(void)pthread_cond_timedwait(&loop.changed, &loop.lock, &until);
}

static void *run(void *context)
{
	(void)context;
	pthread_mutex_lock(&loop.lock);
	while (!loop.ends || loop.posts.first) {
		if (loop.posts.first) {
			loop_posts_run(&loop.posts, &loop.lock, &loop.changed);
			continue;
		}
		sleep_locked();
		pthread_mutex_unlock(&loop.lock);
		(void)loop_timers_run(&loop.timers);
		pthread_mutex_lock(&loop.lock);
	}
	pthread_mutex_unlock(&loop.lock);
	return NULL;
}

int loop_start(uint64_t (*pass)(void))
{
	(void)pass;
	loop.ends = false;
	int r = -pthread_create(&loop.thread, NULL, run, NULL);
	if (r == 0)
		__atomic_store_n(&loop.running, true, __ATOMIC_RELEASE);
	return r;
}

void loop_stop(void)
{
	if (!loop_running() || loop_is_self())
		return;
	pthread_mutex_lock(&loop.lock);
	loop.ends = true;
	__atomic_store_n(&loop.running, false, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&loop.changed);
	pthread_mutex_unlock(&loop.lock);
	(void)pthread_join(loop.thread, NULL);
	while (loop.timers)
		loop_timer_clear(loop.timers);
}

bool loop_running(void)
{
	return __atomic_load_n(&loop.running, __ATOMIC_ACQUIRE);
}

bool loop_is_self(void)
{
	return loop_running() && pthread_equal(loop.thread, pthread_self());
}

void loop_timer_set(struct loop_timer *timer, uint64_t due_ns)
{
	loop_timers_set(&loop.timers, timer, due_ns);
}

void loop_timer_clear(struct loop_timer *timer)
{
	loop_timers_clear(&loop.timers, timer);
}

static int post(void (*function)(void *context), void *context, bool *done)
{
	struct posted_call *made = loop_post_make(function, context, done);
	int r = made ? 0 : -ENOMEM;

	if (r)
		return r;
	pthread_mutex_lock(&loop.lock);
	if (loop_running()) {
		loop_posts_add(&loop.posts, made);
		pthread_cond_broadcast(&loop.changed);
		while (done && !*done)
			pthread_cond_wait(&loop.changed, &loop.lock);
	} else {
		r = -ENOTCONN;
		free(made);
	}
	pthread_mutex_unlock(&loop.lock);
	return r;
}

int loop_post(void (*function)(void *context), void *context)
{
	return post(function, context, NULL);
}

int loop_call(void (*function)(void *context), void *context)
{
	bool done = false;

	if (!loop_is_self())
		return post(function, context, &done);
	function(context);
	return 0;
}

void loop_wake(void)
{
}
