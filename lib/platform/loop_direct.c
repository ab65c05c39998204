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

struct direct_post {
	void (*function)(void *context);
	void *context;
	bool *done; /* NULL: no thread waits */
	struct direct_post *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running; /* atomic */
	bool ends;
	struct direct_post *first;
	struct direct_post **last;
	struct loop_timer *timers; /* of the loop thread */
} loop = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.last = &loop.first,
};

static void timers_run(void)
{
	const uint64_t now = platform_now_ns();

	for (struct loop_timer **at = &loop.timers; *at;) {
		struct loop_timer *timer = *at;
		if (timer->due_ns > now) {
			at = &timer->next;
			continue;
		}
		*at = timer->next;
		timer->set = false;
		timer->expired(timer);
		at = &loop.timers; /* the function may have set or cleared others */
	}
}

/* With the lock held. */
static void sleep_locked(void)
{
	const uint64_t now = platform_now_ns();
	uint64_t left = SLEEP_NS;
	struct timespec until;

	for (const struct loop_timer *each = loop.timers; each; each = each->next) {
		uint64_t due = each->due_ns > now ? each->due_ns - now : 0;
		left = due < left ? due : left;
	}
	if (!left || loop.first || loop.ends)
		return;
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
	while (!loop.ends || loop.first) {
		struct direct_post *post = loop.first;
		if (post) {
			loop.first = post->next;
			if (!loop.first)
				loop.last = &loop.first;
			pthread_mutex_unlock(&loop.lock);
			post->function(post->context);
			pthread_mutex_lock(&loop.lock);
			if (post->done) {
				*post->done = true;
				pthread_cond_broadcast(&loop.changed);
			}
			free(post);
			continue;
		}
		sleep_locked();
		pthread_mutex_unlock(&loop.lock);
		timers_run();
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
	loop_timer_clear(timer);
	timer->due_ns = due_ns;
	timer->set = true;
	timer->next = loop.timers;
	loop.timers = timer;
}

void loop_timer_clear(struct loop_timer *timer)
{
	for (struct loop_timer **at = &loop.timers; *at; at = &(*at)->next)
		if (*at == timer) {
			*at = timer->next;
			break;
		}
	timer->set = false;
}

static int post(void (*function)(void *context), void *context, bool *done)
{
	struct direct_post *made = calloc(1, sizeof(*made));
	int r = made ? 0 : -ENOMEM;

	if (r)
		return r;
	*made = (struct direct_post){ function, context, done, NULL };
	pthread_mutex_lock(&loop.lock);
	if (loop_running()) {
		*loop.last = made;
		loop.last = &made->next;
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
