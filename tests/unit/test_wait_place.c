/* wait_place.c: what a thread waits for, by the functions of its stack. */
#include "unit/test.h"

#include "analysis/wait_place.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define FRAMES_MAX 12u

struct frame {
	enum function_kind kind;
	const char *module;
	const char *name;
};

#define KERNEL(name)                            \
	{                                       \
		FUNCTION_KERNEL, "kernel", name \
	}
#define LIBC(name)                                 \
	{                                          \
		FUNCTION_NATIVE, "libc.so.6", name \
	}
#define NATIVE(name)                          \
	{                                     \
		FUNCTION_NATIVE, "shop", name \
	}
#define FRAMEWORK(name)                                                 \
	{                                                               \
		FUNCTION_READYTORUN, "System.Private.CoreLib.dll", name \
	}
#define MARK                                                       \
	{                                                          \
		FUNCTION_UNKNOWN, "", "[caller unknown: no frame]" \
	}
#define MANAGED(name)                          \
	{                                      \
		FUNCTION_JIT, "Shop.dll", name \
	}

struct expected {
	struct frame frames[FRAMES_MAX]; /* leaf first */
	enum block_cause cause;
	const char *wait;
	const char *where;
	bool idle;
};

static const struct expected cases[] = {
	{ { KERNEL("__schedule"), KERNEL("do_nanosleep"), KERNEL("hrtimer_nanosleep"),
		  LIBC("clock_nanosleep"), NATIVE("doze"), NATIVE("main") },
		BLOCK_SLEEP, "clock_nanosleep", "doze", false },
	/* a lock inside of a read; a page fault whatever it waits for */
	{ { KERNEL("schedule"), KERNEL("rwsem_down_read_slowpath"), KERNEL("filemap_read"),
		  LIBC("read"), NATIVE("load") },
		BLOCK_KERNEL_LOCK, "read", "load", false },
	{ { KERNEL("io_schedule"), KERNEL("filemap_fault"), KERNEL("asm_exc_page_fault"),
		  NATIVE("touch") },
		BLOCK_PAGE_FAULT, NULL, "touch", false },
	/* a caller that was missed may be the program's, but not in the runtime's own threads */
	{ { KERNEL("futex_wait"), FRAMEWORK("System.Threading.Monitor.Wait(object, int)"), MARK,
		  MANAGED("Shop.Program.Main()") },
		BLOCK_EVENT, "System.Threading.Monitor.Wait(object, int)",
		"[caller unknown: no frame]", false },
	{ { KERNEL("futex_wait"), FRAMEWORK("System.Threading.Monitor.Wait(object, int)"), MARK,
		  FRAMEWORK("System.Threading.Thread.StartCallback()") },
		BLOCK_EVENT, "System.Threading.Monitor.Wait(object, int)", NULL, false },
	/* do_wait_intr_irq() is no wait for a child */
	{ { KERNEL("schedule"), KERNEL("do_wait_intr_irq"), KERNEL("eventfd_read"),
		  KERNEL("vfs_read"), LIBC("read"), NATIVE("get") },
		BLOCK_EVENT, "read", "get", false },
	{ { KERNEL("schedule"), KERNEL("do_wait_intr_irq"), KERNEL("timerfd_read_iter"),
		  KERNEL("vfs_read"), LIBC("read"), NATIVE("get") },
		BLOCK_SLEEP, "read", "get", false },
	{ { KERNEL("schedule"), KERNEL("do_wait"), KERNEL("kernel_wait4"), KERNEL("__do_sys_wait4"),
		  LIBC("wait4"), NATIVE("get") },
		BLOCK_CHILD, "wait4", "get", false },
	/* libc is more precise than the kernel's futex */
	{ { KERNEL("futex_wait"), LIBC("__lll_lock_wait"), LIBC("pthread_mutex_lock"),
		  NATIVE("get") },
		BLOCK_LOCK, "pthread_mutex_lock", "get", false },
	{ { KERNEL("futex_wait"), LIBC("__futex_abstimed_wait_common"), LIBC("start_thread") },
		BLOCK_FUTEX, "__futex_abstimed_wait_common", NULL, false },
	/* threads of the kernel: without work, and at work */
	{ { KERNEL("__schedule"), KERNEL("schedule"), KERNEL("worker_thread"), KERNEL("kthread"),
		  KERNEL("ret_from_fork") },
		BLOCK_WORK, NULL, NULL, true },
	{ { KERNEL("schedule"), KERNEL("jbd2_journal_commit_transaction"), KERNEL("kjournald2"),
		  KERNEL("kthread") },
		BLOCK_DISK, NULL, NULL, false },
	{ { KERNEL("schedule"), KERNEL("wait_for_completion"), KERNEL("synchronize_rcu_normal"),
		  LIBC("close"), NATIVE("end") },
		BLOCK_WORK, "close", "end", false },
	/* without kernel frames */
	{ { LIBC("recv"), NATIVE("fetch") }, BLOCK_NETWORK, "recv", "fetch", false },
	/* .NET, by the method that the program called */
	{ { KERNEL("futex_wait"), LIBC("pthread_cond_wait"),
		  FRAMEWORK("System.Threading.Monitor.Enter_Slowpath(object)"),
		  FRAMEWORK("System.Threading.Monitor.Enter(object)"), MANAGED("Shop.Cache.Get()"),
		  FRAMEWORK("System.Threading.Thread.StartCallback()") },
		BLOCK_LOCK, "System.Threading.Monitor.Enter(object)", "Shop.Cache.Get()", false },
	{ { KERNEL("futex_wait"), LIBC("pthread_cond_timedwait"),
		  FRAMEWORK("System.Threading.Thread.Sleep(int)"), MANAGED("Shop.Nap()") },
		BLOCK_SLEEP, "System.Threading.Thread.Sleep(int)", "Shop.Nap()", false },
	{ { KERNEL("futex_wait"), FRAMEWORK("System.Threading.ManualResetEventSlim.Wait(int)"),
		  FRAMEWORK("System.Threading.Tasks.Task.Wait()"), MANAGED("Shop.Get()") },
		BLOCK_TASK, "System.Threading.Tasks.Task.Wait()", "Shop.Get()", false },
	{ { KERNEL("tcp_recvmsg"), LIBC("recvmsg"),
		  { FUNCTION_READYTORUN, "System.Net.Sockets.dll",
			  "System.Net.Sockets.Socket.Receive(byte[])" },
		  MANAGED("Shop.Ask()") },
		BLOCK_NETWORK, "System.Net.Sockets.Socket.Receive(byte[])", "Shop.Ask()", false },
	/* a pool worker without work, and one whose work item waits */
	{ { KERNEL("futex_wait"), FRAMEWORK("System.Threading.LowLevelLifoSemaphore.Wait(int)"),
		  FRAMEWORK(
			  "System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart()") },
		BLOCK_EVENT, "System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart()",
		NULL, true },
	{ { KERNEL("schedule"), KERNEL("irqentry_exit_to_user_mode"), NATIVE("spin") },
		BLOCK_PREEMPTED, NULL, "spin", false },
	{ { { FUNCTION_UNKNOWN, NULL, NULL } }, BLOCK_UNKNOWN, NULL, NULL, false },
};

static void expect_name(const struct symbolmap *names, uint32_t index, const char *name, size_t i)
{
	const char *found = trace_text(names->trace, names->functions.items[index].name);

	if (index ? !name || strcmp(found, name) != 0 : name != NULL)
		fail_msg("case %zu: '%s', not '%s'", i, index ? found : "none",
			name ? name : "none");
}

static void test_causes_and_places_of_waits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t functions[FRAMES_MAX];
		struct symbolmap names;
		struct wait_place place;
		struct trace trace;
		uint32_t count = 0;

		assert_int_equal(trace_init(&trace), 0);
		assert_int_equal(symbolmap_init(&names, &trace, METHOD_NAME_LONG), 0);
		for (; count < FRAMES_MAX && cases[i].frames[count].name; count++) {
			const struct frame *frame = &cases[i].frames[count];
			struct function *function = vec_push(&names.functions);
			function->name = function->full_name = trace_add_text(&trace, frame->name);
			function->module = trace_add_text(&trace, frame->module);
			function->kind = (uint8_t)frame->kind;
			function->named = true;
			functions[count] = names.functions.count - 1;
		}
		wait_place_find(&names, functions, count, &place);
		if (place.cause != cases[i].cause)
			fail_msg("case %zu: %s", i, block_cause_words(place.cause));
		expect_name(&names, place.wait, cases[i].wait, i);
		expect_name(&names, place.where, cases[i].where, i);
		assert_int_equal(place.idle, cases[i].idle);
		symbolmap_done(&names);
		trace_done(&trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_causes_and_places_of_waits) };

	return cmocka_run_group_tests_name("wait_place", tests, NULL, NULL);
}
