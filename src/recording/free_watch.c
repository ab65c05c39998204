/* See free_watch.h. */
#include "recording/free_watch.h"

#include <string.h>

#include "base/clocks.h"
#include "machine/proc.h"
#include "machine/thread_state.h"

#define FINALIZER   ".NET Finalizer"
#define TRIES_MAX   20u
#define THREADS_MAX 256u /* it is one of the first */

static uint32_t find_finalizer(struct proc_reader *proc, uint32_t pid)
{
	struct id_list list = { 0 };
	struct proc_thread thread;
	uint32_t found = 0;

	if (proc_list_threads(proc, pid, &list) == 0)
		for (uint32_t i = 0; i < list.ids.count && i < THREADS_MAX && !found; i++)
			if (proc_read_thread(proc, pid, list.ids.items[i], &thread) == 0 &&
				strcmp(thread.comm, FINALIZER) == 0)
				found = thread.tid;
	vec_done(&list.ids);
	return found;
}

void free_watch_note(struct free_watch *watch, struct proc_reader *proc, uint32_t pid)
{
	if (!watch->tid && watch->tries < TRIES_MAX) {
		watch->tries++;
		watch->tid = find_finalizer(proc, pid);
	}
	if (!watch->tid)
		return;
	watch->switches = thread_state_switches(proc, pid, watch->tid);
	watch->switch_ns = clock_monotonic_ns();
}

uint64_t free_watch_since(const struct free_watch *watch, const struct proc_reader *proc,
	uint32_t pid)
{
	uint64_t switches = 0;

	/* A thread that ran when it was noted has left its CPU since: it was counted once more. */
	if (!watch->switches || !thread_state_sleeps(proc, pid, watch->tid, &switches) ||
		switches != watch->switches)
		return 0;
	return watch->switch_ns;
}
