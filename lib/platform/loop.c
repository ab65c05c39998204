/*
 * See loop.h. One turn of the loop: posted functions, expired timers, a pass over the rings, then
 * poll() until the next of them is due.
 */
#include "lib/platform/loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/platform/platform.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t called;
	pthread_t thread;
	/* one pass over the rings; returns the time until the next, in ns */
	uint64_t (*pass)(void);
	bool running; /* atomic */
	bool stop;    /* atomic */
	int wake_fds[2];
	uint32_t woken; /* atomic: a wake-up was sent and not yet received */
	struct loop_posts posts;
	struct loop_watch *watches;
	uint32_t watch_count;
	struct loop_timer *timers;
	struct pollfd *fds;
	struct loop_watch **order;
	uint32_t fd_room;
	void *forgotten[2]; /* buffers of the parent process, kept for the leak checker */
} loop = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.called = PTHREAD_COND_INITIALIZER,
	.wake_fds = { -1, -1 } };

static __thread bool is_loop;

bool loop_running(void)
{
	return __atomic_load_n(&loop.running, __ATOMIC_ACQUIRE);
}

bool loop_is_self(void)
{
	return is_loop;
}

/* Safe in signal handlers: one write, and none while the previous wake-up has not been received. */
void loop_wake(void)
{
	static const uint64_t one = 1;
	int before = errno;

	if (__atomic_exchange_n(&loop.woken, 1, __ATOMIC_ACQ_REL) == 0 && loop.wake_fds[1] >= 0) {
		ssize_t n = write(loop.wake_fds[1], &one, sizeof(one));
		(void)n; /* the pipe is full: the thread wakes up anyway */
	}
	errno = before;
}

static void wake_taken(void)
{
	uint8_t drop[64];

	while (read(loop.wake_fds[0], drop, sizeof(drop)) == (ssize_t)sizeof(drop))
		;
	__atomic_store_n(&loop.woken, 0, __ATOMIC_RELEASE);
}

/* ---- Posts ---- */

static int post_add(void (*function)(void *context), void *context, bool *done)
{
	struct posted_call *post = loop_post_make(function, context, done);

	if (!post)
		return -ENOMEM;
	pthread_mutex_lock(&loop.lock);
	if (!loop.running) {
		pthread_mutex_unlock(&loop.lock);
		free(post);
		return -ENOTCONN;
	}
	loop_posts_add(&loop.posts, post);
	pthread_mutex_unlock(&loop.lock);
	loop_wake();
	return 0;
}

int loop_post(void (*function)(void *context), void *context)
{
	return post_add(function, context, NULL);
}

int loop_call(void (*function)(void *context), void *context)
{
	bool done = false;

	if (is_loop) {
		function(context);
		return 0;
	}
	int r = post_add(function, context, &done);
	if (r)
		return r;
	pthread_mutex_lock(&loop.lock);
	while (!done)
		pthread_cond_wait(&loop.called, &loop.lock);
	pthread_mutex_unlock(&loop.lock);
	return 0;
}

static void posts_run(void)
{
	pthread_mutex_lock(&loop.lock);
	loop_posts_run(&loop.posts, &loop.lock, &loop.called);
	pthread_mutex_unlock(&loop.lock);
}

/* ---- Watches and timers ---- */

void loop_watch_add(struct loop_watch *watch)
{
	if (watch->watched)
		return;
	watch->watched = true;
	watch->next = loop.watches;
	loop.watches = watch;
	loop.watch_count++;
}

void loop_watch_remove(struct loop_watch *watch)
{
	if (!watch->watched)
		return;
	for (struct loop_watch **at = &loop.watches; *at; at = &(*at)->next) {
		if (*at != watch)
			continue;
		*at = watch->next;
		break;
	}
	watch->watched = false;
	loop.watch_count--;
	/*
	 * A watch whose fd is ready in this turn but whose function was not called yet: do not call
	 * it.
	 */
	for (uint32_t i = 0; i < loop.fd_room; i++)
		if (loop.order[i] == watch)
			loop.order[i] = NULL;
}

void loop_timer_set(struct loop_timer *timer, uint64_t due_ns)
{
	loop_timers_set(&loop.timers, timer, due_ns);
}

void loop_timer_clear(struct loop_timer *timer)
{
	loop_timers_clear(&loop.timers, timer);
}

static bool room_for_fds(uint32_t count)
{
	if (count <= loop.fd_room)
		return true;
	uint32_t room = count + 16;
	struct pollfd *fds = realloc(loop.fds, room * sizeof(*fds));
	if (fds)
		loop.fds = fds;
	struct loop_watch **order = realloc(loop.order, room * sizeof(struct loop_watch *));
	if (order)
		loop.order = order;
	if (!fds || !order)
		return false;
	for (uint32_t i = loop.fd_room; i < room; i++)
		order[i] = NULL;
	loop.fd_room = room;
	return true;
}

static void wait_for_work(uint64_t wait_ns)
{
	uint32_t count = 1;
	int timeout = wait_ns > UINT64_C(1000000000000) ? -1 : (int)((wait_ns + 999999) / 1000000);

	if (!room_for_fds(loop.watch_count + 1)) {
		/* no memory for the list of fds: the rings are still drained */
		platform_sleep_ns(1000000);
		return;
	}
	loop.fds[0] = (struct pollfd){ .fd = loop.wake_fds[0], .events = POLLIN };
	loop.order[0] = NULL;
	for (struct loop_watch *watch = loop.watches; watch; watch = watch->next) {
		loop.fds[count] = (struct pollfd){ .fd = watch->fd, .events = watch->events };
		loop.order[count++] = watch;
	}
	int r = poll(loop.fds, count, timeout);
	if (r < 0)
		return;
	if (loop.fds[0].revents)
		wake_taken();
	for (uint32_t i = 1; i < count; i++) {
		struct loop_watch *watch = loop.order[i];
		loop.order[i] = NULL;
		if (watch && loop.fds[i].revents)
			watch->ready(watch, loop.fds[i].revents);
	}
}

static void *loop_main(void *context)
{
	(void)context;
	is_loop = true;
	platform_thread_name("spoor");
	platform_thread_raise();
	while (!__atomic_load_n(&loop.stop, __ATOMIC_ACQUIRE)) {
		/*
		 * What woke this thread up to now is done in this turn. Also, a handler may have left a
		 * thread between the mark of its wake-up and the wake-up itself.
		 */
		__atomic_store_n(&loop.woken, 0, __ATOMIC_SEQ_CST);
		posts_run();
		uint64_t timer_ns = loop_timers_run(&loop.timers);
		uint64_t pass_ns = loop.pass();
		wait_for_work(timer_ns < pass_ns ? timer_ns : pass_ns);
	}
	posts_run();
	return NULL;
}

int loop_start(uint64_t (*pass)(void))
{
	struct platform_signals before;
	int r = platform_wake_fds(loop.wake_fds);

	if (r)
		return r;
	loop.pass = pass;
	loop.stop = false;
	loop.woken = 0;
	platform_signals_block(&before);
	pthread_mutex_lock(&loop.lock);
	r = -pthread_create(&loop.thread, NULL, loop_main, NULL);
	if (r == 0)
		__atomic_store_n(&loop.running, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&loop.lock);
	platform_signals_restore(&before);
	return r;
}

void loop_stop(void)
{
	if (!loop_running())
		return;
	__atomic_store_n(&loop.stop, true, __ATOMIC_RELEASE);
	loop_wake();
	pthread_join(loop.thread, NULL);
	pthread_mutex_lock(&loop.lock);
	__atomic_store_n(&loop.running, false, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&loop.lock);
	posts_run(); /* functions that were posted meanwhile: their callers wait */
	int fds[2] = { loop.wake_fds[0], loop.wake_fds[1] };
	loop.wake_fds[0] = loop.wake_fds[1] = -1;
	platform_close(fds[0]);
	if (fds[1] != fds[0])
		platform_close(fds[1]);
}

void loop_forget(void)
{
	pthread_mutex_init(&loop.lock, NULL);
	pthread_cond_init(&loop.called, NULL);
	if (loop.wake_fds[0] >= 0)
		platform_close(loop.wake_fds[0]);
	if (loop.wake_fds[1] >= 0 && loop.wake_fds[1] != loop.wake_fds[0])
		platform_close(loop.wake_fds[1]);
	loop.wake_fds[0] = loop.wake_fds[1] = -1;
	loop.running = loop.stop = false;
	loop.woken = 0;
	loop.posts = (struct loop_posts){ 0 };
	loop.watches = NULL;
	loop.watch_count = 0;
	loop.timers = NULL;
	is_loop = false;
	/*
	 * The loop thread of the parent may have been inside realloc(), so these pointers may be
	 * invalid. They are not freed.
	 */
	loop.forgotten[0] = loop.fds;
	loop.forgotten[1] = loop.order;
	loop.fds = NULL;
	loop.order = NULL;
	loop.fd_room = 0;
}
