/* See deadlocks.h. */
#include "analysis/deadlocks.h"

#include <errno.h>

#define NONE UINT32_MAX

int deadlocks_add(struct deadlocks *deadlocks, const struct deadlock_wait *wait)
{
	return vec_add(&deadlocks->waits, *wait) ? 0 : -ENOMEM;
}

/* The position of the wait of this thread; NONE: it does not wait. */
static uint32_t wait_of(const struct deadlocks *deadlocks, uint32_t process, uint32_t tid)
{
	for (uint32_t i = 0; i < deadlocks->waits.count; i++)
		if (deadlocks->waits.items[i].process == process &&
			deadlocks->waits.items[i].tid == tid)
			return i;
	return NONE;
}

/* Whether following the owners leads back to this wait. */
static bool is_in_circle(const struct deadlocks *deadlocks, uint32_t first)
{
	uint32_t at = deadlocks->waits.items[first].next;

	for (uint32_t i = 0; i < deadlocks->waits.count && at != NONE && at != first; i++)
		at = deadlocks->waits.items[at].next;
	return at == first;
}

void deadlocks_find(struct deadlocks *deadlocks)
{
	for (uint32_t i = 0; i < deadlocks->waits.count; i++) {
		struct deadlock_wait *wait = &deadlocks->waits.items[i];
		wait->next = wait_of(deadlocks, wait->process, wait->owner);
	}
	for (uint32_t i = 0; i < deadlocks->waits.count; i++) {
		if (deadlocks->waits.items[i].circle || !is_in_circle(deadlocks, i))
			continue;
		deadlocks->circles++;
		for (uint32_t at = i; !deadlocks->waits.items[at].circle;
			at = deadlocks->waits.items[at].next)
			deadlocks->waits.items[at].circle = deadlocks->circles;
	}
}

uint32_t deadlocks_count(const struct deadlocks *deadlocks, uint32_t circle)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < deadlocks->waits.count; i++)
		count += deadlocks->waits.items[i].circle == circle;
	return count;
}

void deadlocks_done(struct deadlocks *deadlocks)
{
	vec_done(&deadlocks->waits);
}
