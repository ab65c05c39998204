/* See managed_wait.h. */
#include "code/managed_wait.h"

#include <stddef.h>

#include "base/text.h"

static const struct managed_wait waits[] = {
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

bool managed_wait_is_runner(const char *name)
{
	for (size_t i = 0; i < sizeof(runners) / sizeof(runners[0]); i++) {
		if (text_begins_with(name, runners[i]))
			return true;
	}
	return false;
}

bool managed_wait_is_io(const char *name)
{
	static const char *const io[] = { "System.IO.", "System.Net.Sockets.", "Interop+Sys.",
		"System.ConsolePal." };

	for (size_t i = 0; i < sizeof(io) / sizeof(io[0]); i++)
		if (text_begins_with(name, io[i]))
			return true;
	return false;
}

const struct managed_wait *managed_wait_of(const char *name)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		if (text_begins_with(name, waits[i].method))
			return &waits[i];
	}
	return NULL;
}
