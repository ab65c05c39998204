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

#include "stacks/thread_dump.h"
#include "trace/symbolmap.h"

struct wait {
	const char *method; /* the beginning of its name */
	const char *words;
	bool lock;
	bool idle;  /* a thread of the runtime without work */
	bool alone; /* only where no other wait is nearer to the leaf */
};

static const struct wait waits[] = {
	{ .method = "System.Threading.Thread.Sleep(", .words = "for its sleep to end" },
	{ .method = "System.Threading.Thread.Join(", .words = "for a thread to end" },
	{ .method = "System.Threading.Monitor.Wait(", .words = "for a pulse" },
	{ .method = "System.Threading.Monitor.", .words = "for a lock", .lock = true },
	{ .method = "System.Threading.Lock.", .words = "for a lock", .lock = true },
	{ .method = "System.Threading.ReaderWriterLockSlim.", .words = "for a lock", .lock = true },
	{ .method = "System.Threading.SpinLock.", .words = "for a lock", .lock = true },
	{ .method = "System.Threading.WaitHandle.", .words = "for a handle" },
	{ .method = "System.Threading.SemaphoreSlim.Wait", .words = "for a semaphore" },
	{ .method = "System.Threading.ManualResetEventSlim.Wait(", .words = "for an event" },
	{ .method = "System.Threading.CountdownEvent.Wait(", .words = "for a countdown" },
	{ .method = "System.Threading.Barrier.", .words = "for a barrier" },
	{ .method = "System.Threading.Tasks.Task.", .words = "for a task" },
	{ .method = "System.Threading.Tasks.Task`1", .words = "for a task" },
	{ .method = "System.Threading.Tasks.Task<", .words = "for a task" },
	{ .method = "System.Threading.PortableThreadPool.WorkerThread.",
		.words = "for work (thread pool)",
		.idle = true,
		.alone = true },
	{ .method = "System.Threading.PortableThreadPool.GateThread.",
		.words = "for its next look (thread pool)",
		.idle = true },
	{ .method = "System.Threading.PortableThreadPool.WaitThread.",
		.words = "for handles (thread pool)",
		.idle = true },
	{ .method = "System.Threading.TimerQueue.TimerThread(",
		.words = "for the next timer",
		.idle = true },
	{ .method = "System.Diagnostics.Tracing.CounterGroup.PollForValues(",
		.words = "for its next look (counters)",
		.idle = true },
};

/* What runs the code of others. */
static const char *const runners[] = {
	"System.Threading.ThreadPoolWorkQueue.",
	"System.Threading.ExecutionContext.",
	"System.Threading.QueueUserWorkItemCallback",
	"System.Threading.CancellationTokenSource.",
	"System.Threading.Thread.Start",
	"System.Threading.Tasks.Task.Execute",
	"System.Threading.Tasks.Task.InnerInvoke(",
	"System.Threading.Tasks.Task.RunContinuations(",
	"System.Threading.Tasks.Task.<>",
	"System.Threading.Tasks.AwaitTaskContinuation.",
	"System.Threading.TimerQueue.Fire",
	"System.Threading.TimerQueueTimer.",
};

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool is_runner(const char *name)
{
	for (size_t i = 0; i < sizeof(runners) / sizeof(runners[0]); i++) {
		if (begins_with(name, runners[i]))
			return true;
	}
	return false;
}

static const struct wait *wait_of(const char *name)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		if (begins_with(name, waits[i].method))
			return &waits[i];
	}
	return NULL;
}

static const struct wait *find_wait(const struct thread_dump *dump,
	const struct dump_thread *thread)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, thread->stack, &count);
	const struct wait *found = NULL;

	if (thread->state == 'R' || thread->mode != THREAD_NATIVE || thread->moved)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		const char *name = strtab_get(&dump->texts, frame->name);
		if (!dump_frame_is_managed(frame))
			continue;
		const struct wait *wait = wait_of(name);
		if ((!wait && !begins_with(name, "System.Threading.")) || is_runner(name))
			break;
		if (wait && !(wait->alone && found))
			found = wait;
	}
	return found;
}

/*
 * Its own threads have no managed frames while they have nothing to do: finalizer, debugger,
 * collector, signal handler.
 */
static bool is_idle(const struct thread_dump *dump, const struct dump_thread *thread,
	const struct wait *wait)
{
	if (thread->state != 'S' || thread->moved || dump->unsampled_reason)
		return false;
	return wait ? wait->idle
		    : !thread->managed_count &&
			       begins_with(strtab_get(&dump->texts, thread->name), ".NET ");
}

/*
 * The runtime's thread that sends the events of a session, of this one too: it runs because it is
 * looked at.
 */
static bool serves_session(const struct thread_dump *dump, const struct dump_thread *thread)
{
	return !thread->managed_count &&
	       strcmp(strtab_get(&dump->texts, thread->name), ".NET EventPipe") == 0;
}

int thread_waits_find(struct thread_dump *dump)
{
	vec_each(thread, &dump->threads) {
		const struct wait *wait = find_wait(dump, thread);
		thread->idle = is_idle(dump, thread, wait);
		thread->serves_session = serves_session(dump, thread);
		thread->waits_for_lock = wait && wait->lock;
		thread->waits_for = wait ? strtab_add_z(&dump->texts, wait->words) : 0;
		if (wait && !thread->waits_for)
			return -ENOMEM;
	}
	return 0;
}
