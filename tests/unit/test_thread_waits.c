/*
 * thread_waits.c: the object that a thread waits for. A pool worker with a work item on its stack
 * is not idle.
 */
#include "unit/test.h"

#include <string.h>

#include "stacks/thread_dump.h"
#include "stacks/thread_waits.h"
#include "trace/symbolmap.h"

#define PULSE                                         \
	"System.Threading.Monitor.Wait(object, int)", \
		"System.Threading.ManualResetEventSlim.Wait(int, CancellationToken)"
#define TASK                                                                               \
	PULSE, "System.Threading.Tasks.Task.SpinThenBlockingWait(int, CancellationToken)", \
		"System.Threading.Tasks.Task.Wait()"
#define WORKER                                                                  \
	"System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart()", \
		"System.Threading.Thread.StartCallback()"
#define RUN_ITEM                                                                                                              \
	"System.Threading.ExecutionContext.RunFromThreadPoolDispatchLoop(Thread, ExecutionContext, ContextCallback, object)", \
		"System.Threading.Tasks.Task.ExecuteWithThreadLocal(ref Task, Thread)",                                       \
		"System.Threading.ThreadPoolWorkQueue.Dispatch()"

/* The frames of .NET 10, leaf first. */
static const struct {
	const char *frames[12];
	const char *words;
	bool idle;
} cases[] = {
	{ { "System.Threading.LowLevelLifoSemaphore.WaitNative(SafeWaitHandle, int)",
		  "System.Threading.LowLevelLifoSemaphore.WaitForSignal(int)", WORKER },
		"for work (thread pool)", true },
	{ { TASK, "Shop.Orders.Get()", RUN_ITEM, WORKER }, "for a task", false },
	{ { TASK, RUN_ITEM, WORKER }, "for a task", false },
	{ { TASK, WORKER }, "for a task", false }, /* with any frames inlined */
	{ { PULSE, RUN_ITEM, WORKER }, "for an event", false },
	{ { "System.Threading.Thread.Sleep(int)", "System.Threading.ThreadPoolWorkQueue.Dispatch()",
		  WORKER },
		"for its sleep to end", false },
	{ { "Interop.Sys.Read(SafeHandle, byte*, int)",
		  "System.Threading.ThreadPoolWorkQueue.Dispatch()", WORKER },
		"", false },
	{ { "System.Threading.ThreadPoolWorkQueue.Dispatch()", WORKER }, "", false },
	{ { "System.Threading.WaitHandle.WaitOneNoCheck(int, bool, object, WaitHandleWaitSourceMap)",
		  "System.Threading.PortableThreadPool.GateThread.GateThreadStart()",
		  "System.Threading.Thread.StartCallback()" },
		"for its next look (thread pool)", true },
	{ { "System.Threading.WaitHandle.WaitOneNoCheck(int, bool, object, WaitHandleWaitSourceMap)",
		  "System.Threading.TimerQueue.TimerThread()",
		  "System.Threading.Thread.StartCallback()" },
		"for the next timer", true },
	{ { "System.Threading.WaitHandle.WaitOneNoCheck(int, bool, object, WaitHandleWaitSourceMap)",
		  "System.Diagnostics.Tracing.CounterGroup.PollForValues()",
		  "System.Threading.Thread.StartCallback()" },
		"for its next look (counters)", true },
	{ { "System.Threading.WaitHandle.WaitOneNoCheck(int, bool, object, WaitHandleWaitSourceMap)",
		  "Shop.Count()", "System.Diagnostics.Tracing.CounterGroup.PollForValues()",
		  "System.Threading.Thread.StartCallback()" },
		"for a handle", false },
	{ { PULSE, "System.Threading.TimerQueueTimer.Fire(bool)",
		  "System.Threading.TimerQueue.FireNextTimers()",
		  "System.Threading.ThreadPoolWorkQueue.Dispatch()", WORKER },
		"for an event", false },
};

static struct dump_thread *thread_with(struct thread_dump *dump, const char *const *names,
	size_t count)
{
	uint64_t frames[16];
	struct dump_thread *thread;

	assert_int_equal(thread_dump_init(dump), 0);
	for (size_t i = 0; i < count; i++) {
		const struct dump_frame frame = { .name = strtab_add_z(&dump->texts, names[i]),
			.kind = FUNCTION_READYTORUN };
		frames[i] = thread_dump_frame(dump, &frame);
	}
	thread = vec_push(&dump->threads);
	assert_non_null(thread);
	*thread = (struct dump_thread){
		.name = strtab_add_z(&dump->texts, ".NET TP Worker"),
		.stack = stack_table_intern(&dump->stacks, frames, (uint32_t)count),
		.managed_count = (uint32_t)count,
		.mode = count ? THREAD_NATIVE : THREAD_UNSAMPLED,
		.state = 'S',
	};
	return thread;
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct thread_dump dump;
		size_t count = 0;
		while (count < 12 && cases[c].frames[count])
			count++;
		struct dump_thread *thread = thread_with(&dump, cases[c].frames, count);
		assert_int_equal(thread_waits_find(&dump), 0);
		assert_string_equal(strtab_get(&dump.texts, thread->waits_for), cases[c].words);
		assert_int_equal(thread->idle, cases[c].idle);
		/*
		 * Frames and state of two different times, or of a running thread, do not show a
		 * wait.
		 */
		thread->moved = true;
		assert_int_equal(thread_waits_find(&dump), 0);
		assert_true(!thread->waits_for && !thread->idle);
		thread->moved = false;
		thread->state = 'R';
		assert_int_equal(thread_waits_find(&dump), 0);
		assert_true(!thread->waits_for && !thread->idle);
		thread_dump_done(&dump);
	}
}

static void test_runtime_threads(void **state)
{
	struct thread_dump dump;
	struct dump_thread *thread = thread_with(&dump, NULL, 0);

	(void)state;
	assert_int_equal(thread_waits_find(&dump), 0);
	assert_true(thread->idle);
	assert_false(thread->serves_session);
	thread->state = 'D';
	assert_int_equal(thread_waits_find(&dump), 0);
	assert_false(thread->idle);
	thread->state = 'R';
	thread->name = strtab_add_z(&dump.texts, ".NET EventPipe");
	assert_int_equal(thread_waits_find(&dump), 0);
	assert_true(!thread->idle && thread->serves_session);
	thread->state = 'S';
	thread->name = strtab_add_z(&dump.texts, "worker");
	assert_int_equal(thread_waits_find(&dump), 0);
	assert_false(thread->idle);
	thread->name = strtab_add_z(&dump.texts, ".NET Finalizer");
	/* so its managed frames are unknown */
	dump.unsampled_reason = strtab_add_z(&dump.texts, "it is stopped");
	assert_int_equal(thread_waits_find(&dump), 0);
	assert_false(thread->idle);
	thread_dump_done(&dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_runtime_threads),
	};

	return cmocka_run_group_tests_name("thread_waits", tests, NULL, NULL);
}
