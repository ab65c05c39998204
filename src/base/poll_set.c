/* See poll_set.h. */
#include "base/poll_set.h"

#include <errno.h>
#include <time.h>

#include "base/clocks.h"

#define NS_PER_MS UINT64_C(1000000)

void poll_set_begin(struct poll_set *set, uint64_t until_ns)
{
	vec_reset(&set->fds);
	set->wake_ns = until_ns;
	set->ready = 0;
	set->lacks_memory = false;
	set->callers = NULL;
	set->caller_count = 0;
}

uint32_t poll_set_add(struct poll_set *set, int fd, short events)
{
	uint32_t number = set->fds.count;

	if (!vec_add(&set->fds, ((struct pollfd){ .fd = fd, .events = events })))
		set->lacks_memory = true;
	return number;
}

void poll_set_add_callers(struct poll_set *set, struct pollfd *fds, size_t count)
{
	set->callers = fds;
	set->caller_count = count;
	set->caller_first = set->fds.count;
	for (size_t i = 0; i < count; i++)
		(void)poll_set_add(set, fds[i].fd, fds[i].events); /* found by caller_first */
}

void poll_set_wake(struct poll_set *set, uint64_t time_ns)
{
	if (time_ns < set->wake_ns)
		set->wake_ns = time_ns;
}

uint64_t poll_set_wait(struct poll_set *set)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (set->lacks_memory)
		poll_set_wake(set, now_ns + POLL_SET_RETRY_MS * NS_PER_MS);
	struct timespec left = clock_left(set->wake_ns, now_ns);

	set->ready = ppoll(set->fds.items, set->fds.count, &left, NULL);
	if (set->ready < 0) {
		for (uint32_t i = 0; i < set->fds.count; i++)
			set->fds.items[i].revents = 0;
		set->ready = 0;
		if (errno != EINTR)
			(void)poll(NULL, 0, POLL_SET_RETRY_MS); /* instead of a busy loop */
	}
	for (size_t i = 0; i < set->caller_count; i++)
		set->callers[i].revents = poll_set_revents(set, set->caller_first + (uint32_t)i);
	return clock_monotonic_ns();
}

short poll_set_revents(const struct poll_set *set, uint32_t number)
{
	return number < set->fds.count ? set->fds.items[number].revents : 0;
}

void poll_set_done(struct poll_set *set)
{
	vec_done(&set->fds);
}

short poll_one(int fd, short events, int timeout_ms)
{
	struct pollfd one = { .fd = fd, .events = events };
	int ready = poll(&one, 1, timeout_ms);

	if (ready < 0)
		return errno == EINTR ? 0 : POLLERR;
	return one.revents;
}
