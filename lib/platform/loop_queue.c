/* See loop_queue.h. */
#include "lib/platform/loop_queue.h"

#include <stdlib.h>

#include "lib/platform/platform.h"

struct posted_call {
	struct posted_call *next;
	void (*function)(void *context);
	void *context;
	bool *done;
};

struct posted_call *loop_post_make(void (*function)(void *context), void *context, bool *done)
{
	struct posted_call *post = calloc(1, sizeof(*post));

	if (post)
		*post = (struct posted_call){ NULL, function, context, done };
	return post;
}

void loop_posts_add(struct loop_posts *posts, struct posted_call *post)
{
	if (posts->first)
		posts->newest->next = post;
	else
		posts->first = post;
	posts->newest = post;
}

void loop_posts_run(struct loop_posts *posts, pthread_mutex_t *lock, pthread_cond_t *changed)
{
	while (posts->first) {
		struct posted_call *post = posts->first;
		posts->first = post->next;
		pthread_mutex_unlock(lock);
		post->function(post->context);
		pthread_mutex_lock(lock);
		if (post->done) {
			*post->done = true;
			pthread_cond_broadcast(changed);
		}
		free(post);
	}
}

void loop_timers_set(struct loop_timer **timers, struct loop_timer *timer, uint64_t due_ns)
{
	timer->due_ns = due_ns;
	if (timer->set)
		return;
	timer->set = true;
	timer->next = *timers;
	*timers = timer;
}

void loop_timers_clear(struct loop_timer **timers, struct loop_timer *timer)
{
	if (!timer->set)
		return;
	for (struct loop_timer **at = timers; *at; at = &(*at)->next) {
		if (*at != timer)
			continue;
		*at = timer->next;
		break;
	}
	timer->set = false;
}

uint64_t loop_timers_left_ns(const struct loop_timer *timers, uint64_t now_ns)
{
	uint64_t left_ns = UINT64_MAX;

	for (const struct loop_timer *timer = timers; timer; timer = timer->next) {
		uint64_t due_ns = timer->due_ns > now_ns ? timer->due_ns - now_ns : 0;
		left_ns = due_ns < left_ns ? due_ns : left_ns;
	}
	return left_ns;
}

uint64_t loop_timers_run(struct loop_timer **timers)
{
	const uint64_t now_ns = platform_now_ns();
	struct loop_timer *timer = *timers;

	while (timer) {
		if (timer->due_ns > now_ns) {
			timer = timer->next;
			continue;
		}
		loop_timers_clear(timers, timer);
		timer->expired(timer);
		timer = *timers; /* the function may have changed the list */
	}
	return loop_timers_left_ns(*timers, now_ns);
}
