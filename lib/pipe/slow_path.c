/* See slow_path.h. */
#include "lib/pipe/slow_path.h"

#include <string.h>

#include "lib/event/thread_ring.h"

static struct {
	uint64_t slots; /* slots whose events need the slow path themselves */
	bool resting;
} slow;

static void publish(void)
{
	bool all = slow.resting || __atomic_load_n(&pipe_hot.fences, __ATOMIC_RELAXED);

	__atomic_store_n(&pipe_hot.special, all ? UINT64_MAX : slow.slots | LOGGER_SLOTS,
		__ATOMIC_RELAXED);
}

void slow_path_set_up(bool fences)
{
	slow.resting = false;
	__atomic_store_n(&pipe_hot.asleep, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&pipe_hot.fences, fences, __ATOMIC_RELAXED);
	publish();
}

void slow_path_child(void)
{
	memset(&slow, 0, sizeof(slow));
}

void slow_path_fences(void)
{
	__atomic_store_n(&pipe_hot.fences, true, __ATOMIC_RELAXED);
	publish();
}

void slow_path_slot(uint32_t slot, bool on)
{
	uint64_t bit = UINT64_C(1) << slot;

	slow.slots = on ? slow.slots | bit : slow.slots & ~bit;
	publish();
}

bool slow_path_rest(void)
{
	if (slow.resting && __atomic_load_n(&pipe_hot.asleep, __ATOMIC_ACQUIRE))
		return true;
	__atomic_store_n(&pipe_hot.asleep, 1, __ATOMIC_RELEASE);
	slow.resting = true;
	publish();
	return false;
}

void slow_path_work(void)
{
	if (!slow.resting)
		return;
	slow.resting = false;
	__atomic_store_n(&pipe_hot.asleep, 0, __ATOMIC_RELAXED);
	publish();
}
