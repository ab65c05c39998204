/*
 * See thread_waits.h.
 *
 * The frames are read from the leaf outwards, as long as they are System.Threading's: the outermost
 * wait among them is the one that the program called. They end at the frame that runs a work item,
 * a timer or a thread's start, because the frames beyond it only started what waits. So a pool
 * worker waits for work only where no work item is on its stack, whichever code that item is of.
 */
#include "stacks/thread_waits.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "code/managed_wait.h"
#include "stacks/thread_dump.h"
#include "trace/symbolmap.h"

static const struct managed_wait *find_wait(const struct thread_dump *dump,
	const struct dump_thread *thread)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, thread->stack, &count);
	const struct managed_wait *found = NULL;

	if (thread->state == 'R' || thread->mode != THREAD_NATIVE || thread->moved)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		const char *name = strtab_get(&dump->texts, frame->name);
		if (!dump_frame_is_managed(frame))
			continue;
		const struct managed_wait *wait = managed_wait_of(name);
		if ((!wait && !text_begins_with(name, "System.Threading.")) ||
			managed_wait_is_runner(name))
			break;
		if (wait && !(wait->alone && found))
			found = wait;
	}
	return found;
}

/* Its own threads have no managed frames while idle: finalizer, debugger, collector, signals. */
static bool is_idle(const struct thread_dump *dump, const struct dump_thread *thread,
	const struct managed_wait *wait)
{
	if (thread->state != 'S' || thread->moved || dump->unsampled_reason)
		return false;
	return wait ? wait->idle
		    : !thread->managed_count &&
			       text_begins_with(strtab_get(&dump->texts, thread->name), ".NET ");
}

/* The runtime's thread that sends sessions' events, this one's too: it runs for this program. */
static bool serves_session(const struct thread_dump *dump, const struct dump_thread *thread)
{
	return !thread->managed_count &&
	       strcmp(strtab_get(&dump->texts, thread->name), ".NET EventPipe") == 0;
}

int thread_waits_find(struct thread_dump *dump)
{
	vec_each(thread, &dump->threads) {
		const struct managed_wait *wait = find_wait(dump, thread);
		thread->idle = is_idle(dump, thread, wait);
		thread->serves_session = serves_session(dump, thread);
		thread->waits_for_lock = wait && wait->lock;
		thread->waits_for = wait ? strtab_add_z(&dump->texts, wait->words) : 0;
		if (wait && !thread->waits_for)
			return -ENOMEM;
	}
	return 0;
}
