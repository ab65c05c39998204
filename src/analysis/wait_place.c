/*
 * See wait_place.h.
 *
 * The kernel's frames give the cause: the innermost known one, as a lock inside of a file's read is
 * a wait for the lock; but a page fault is one whatever it waits for. Managed frames are more
 * precise than the kernel's, which only know a futex.
 */
#include "analysis/wait_place.h"

#include <stddef.h>
#include <string.h>

#include "analysis/own_function.h"
#include "base/text.h"
#include "code/managed_wait.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

struct cause_name {
	const char *start; /* of the function's name */
	enum block_cause cause;
};

static const struct cause_name kernel_names[] = {
	{ "exc_page_fault", BLOCK_PAGE_FAULT },
	{ "asm_exc_page_fault", BLOCK_PAGE_FAULT },
	{ "do_user_addr_fault", BLOCK_PAGE_FAULT },
	{ "eventfd_", BLOCK_EVENT },
	{ "timerfd_", BLOCK_SLEEP },
	{ "do_msgrcv", BLOCK_EVENT },
	{ "do_msgsnd", BLOCK_EVENT },
	{ "do_semtimedop", BLOCK_EVENT },
	{ "__do_semtimedop", BLOCK_EVENT },
	{ "futex_", BLOCK_FUTEX },
	{ "do_futex", BLOCK_FUTEX },
	{ "hrtimer_nanosleep", BLOCK_SLEEP },
	{ "do_nanosleep", BLOCK_SLEEP },
	{ "ep_poll", BLOCK_POLL },
	{ "do_epoll_wait", BLOCK_POLL },
	{ "do_sys_poll", BLOCK_POLL },
	{ "do_poll", BLOCK_POLL },
	{ "do_select", BLOCK_POLL },
	{ "io_cqring_wait", BLOCK_POLL },
	{ "inet_", BLOCK_NETWORK },
	{ "tcp_", BLOCK_NETWORK },
	{ "udp_", BLOCK_NETWORK },
	{ "unix_", BLOCK_NETWORK },
	{ "sk_", BLOCK_NETWORK },
	{ "sock_", BLOCK_NETWORK },
	{ "__skb_", BLOCK_NETWORK },
	{ "netlink_", BLOCK_NETWORK },
	{ "vsock_", BLOCK_NETWORK },
	{ "pipe_", BLOCK_PIPE },
	{ "anon_pipe_", BLOCK_PIPE },
	{ "fifo_open", BLOCK_PIPE },
	{ "wait_for_partner", BLOCK_PIPE },
	{ "n_tty_", BLOCK_TERMINAL },
	{ "tty_", BLOCK_TERMINAL },
	{ "flock_", BLOCK_FILE_LOCK },
	{ "locks_lock_", BLOCK_FILE_LOCK },
	{ "fcntl_setlk", BLOCK_FILE_LOCK },
	{ "__mutex_lock", BLOCK_KERNEL_LOCK },
	{ "mutex_lock", BLOCK_KERNEL_LOCK },
	{ "rwsem_down_", BLOCK_KERNEL_LOCK },
	{ "__down", BLOCK_KERNEL_LOCK },
	{ "down_", BLOCK_KERNEL_LOCK },
	{ "percpu_down_", BLOCK_KERNEL_LOCK },
	{ "rt_mutex_", BLOCK_KERNEL_LOCK },
	{ "io_schedule", BLOCK_DISK },
	{ "folio_wait_", BLOCK_DISK },
	{ "blk_", BLOCK_DISK },
	{ "submit_bio_wait", BLOCK_DISK },
	{ "wait_on_buffer", BLOCK_DISK },
	{ "jbd2_", BLOCK_DISK },
	{ "balance_dirty_pages", BLOCK_DISK },
	{ "filemap_", BLOCK_DISK },
	{ "synchronize_rcu", BLOCK_WORK },
	{ "__synchronize_srcu", BLOCK_WORK },
	{ "kernel_wait4", BLOCK_CHILD },
	/* not do_wait, as do_wait_intr() waits for other things */
	{ "kernel_waitid", BLOCK_CHILD },
	{ "wait_for_vfork_done", BLOCK_CHILD },
	{ "kernel_clone", BLOCK_CHILD },
	{ "do_sigtimedwait", BLOCK_SIGNAL },
	{ "sigsuspend", BLOCK_SIGNAL },
	{ "__x64_sys_pause", BLOCK_SIGNAL },
	{ "__do_sys_pause", BLOCK_SIGNAL },
	{ "signalfd_", BLOCK_SIGNAL },
	{ "do_signal_stop", BLOCK_STOPPED },
	{ "ptrace_stop", BLOCK_STOPPED },
	{ "irqentry_exit", BLOCK_PREEMPTED },
	{ "exit_to_user_mode", BLOCK_PREEMPTED },
	{ "preempt_schedule", BLOCK_PREEMPTED },
	{ "__cond_resched", BLOCK_PREEMPTED },
	{ "__do_sys_sched_yield", BLOCK_PREEMPTED },
};

/* Of libc, where the kernel's frames are not recorded, or only say futex. */
static const struct cause_name libc_names[] = {
	{ "__lll_lock_", BLOCK_LOCK },
	{ "__GI___lll_lock_", BLOCK_LOCK },
	{ "pthread_mutex_", BLOCK_LOCK },
	{ "___pthread_mutex_", BLOCK_LOCK },
	{ "__pthread_mutex_", BLOCK_LOCK },
	{ "pthread_rwlock_", BLOCK_LOCK },
	{ "___pthread_rwlock_", BLOCK_LOCK },
	{ "pthread_cond_", BLOCK_EVENT },
	{ "___pthread_cond_", BLOCK_EVENT },
	{ "__pthread_cond_", BLOCK_EVENT },
	{ "sem_", BLOCK_EVENT },
	{ "__new_sem_", BLOCK_EVENT },
	{ "pthread_join", BLOCK_EVENT },
	{ "__pthread_clockjoin", BLOCK_EVENT },
	{ "nanosleep", BLOCK_SLEEP },
	{ "clock_nanosleep", BLOCK_SLEEP },
	{ "usleep", BLOCK_SLEEP },
	{ "epoll_", BLOCK_POLL },
	{ "poll", BLOCK_POLL },
	{ "__poll", BLOCK_POLL },
	{ "select", BLOCK_POLL },
	{ "recv", BLOCK_NETWORK },
	{ "send", BLOCK_NETWORK },
	{ "accept", BLOCK_NETWORK },
	{ "connect", BLOCK_NETWORK },
	{ "wait4", BLOCK_CHILD },
	{ "waitpid", BLOCK_CHILD },
	{ "waitid", BLOCK_CHILD },
	{ "pause", BLOCK_SIGNAL },
	{ "sigsuspend", BLOCK_SIGNAL },
};

/* Libraries of the C and .NET runtimes: what they do, they do for their callers. */
static const char *const runtime_modules[] = { "libc.", "libc-", "libpthread", "ld-", "libm.",
	"libstdc++.", "libgcc_s.", "libcoreclr.", "libclrjit.", "libclrgc.", "libSystem.",
	"libhostfxr.", "libhostpolicy.", "linux-vdso", "[vdso]", "vdso" };

static enum block_cause cause_of(const struct cause_name *known, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (text_begins_with(name, known[i].start))
			return known[i].cause;
	return BLOCK_UNKNOWN;
}

static bool is_managed(const struct function *function)
{
	return function->kind == FUNCTION_JIT || function->kind == FUNCTION_READYTORUN;
}

static bool is_of_runtime(const struct symbolmap *names, uint32_t index)
{
	const struct function *function = &names->functions.items[index];
	const char *module = trace_text(names->trace, function->module);

	if (function->kind == FUNCTION_KERNEL || function->kind == FUNCTION_STUB)
		return true;
	if (is_managed(function))
		return !own_function(names, index);
	for (size_t i = 0; i < sizeof(runtime_modules) / sizeof(runtime_modules[0]); i++)
		if (text_begins_with(module, runtime_modules[i]))
			return true;
	return false;
}

/*
 * The innermost function that is not of the runtime. It may have been missed, and then is its mark;
 * but not in a stack of which no other function is the program's.
 */
static uint32_t find_own(const struct symbolmap *names, const uint32_t *functions, uint32_t count)
{
	uint32_t first = 0;
	uint32_t known;

	while (first < count && is_of_runtime(names, functions[first]))
		first++;
	for (known = first; known < count; known++)
		if (!own_function_is_missed(names, functions[known]) &&
			!is_of_runtime(names, functions[known]))
			return first;
	return count;
}

uint32_t wait_place_own(const struct symbolmap *names, const uint32_t *functions, uint32_t count)
{
	uint32_t own = find_own(names, functions, count);

	return own < count ? functions[own] : 0;
}

/* By the kernel's frames, of which there are *ret_count. *ret_idle: a thread of the kernel without work. */
static enum block_cause kernel_cause(const struct symbolmap *names, const uint32_t *functions,
	uint32_t count, uint32_t *ret_count, bool *ret_idle)
{
	enum block_cause found = BLOCK_UNKNOWN;
	bool is_thread = false; /* of the kernel */
	uint32_t i = 0;

	for (; i < count; i++) {
		const struct function *function = &names->functions.items[functions[i]];
		if (function->kind != FUNCTION_KERNEL)
			break;
		enum block_cause cause =
			cause_of(kernel_names, sizeof(kernel_names) / sizeof(kernel_names[0]),
				trace_text(names->trace, function->name));
		if (cause != BLOCK_UNKNOWN && (found == BLOCK_UNKNOWN || cause == BLOCK_PAGE_FAULT))
			found = cause;
		is_thread |= strcmp(trace_text(names->trace, function->name), "kthread") == 0 ||
			     strcmp(trace_text(names->trace, function->name), "kthreadd") == 0;
	}
	*ret_count = i;
	*ret_idle = found == BLOCK_UNKNOWN && is_thread;
	return *ret_idle ? BLOCK_WORK : found;
}

/*
 * The outermost managed wait of System.Threading, as in the stacks of a live process. The frames
 * beyond a runner only started what waits.
 */
static const struct managed_wait *find_managed_wait(const struct symbolmap *names,
	const uint32_t *functions, uint32_t count, uint32_t *ret_at)
{
	const struct managed_wait *found = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct function *function = &names->functions.items[functions[i]];
		const char *name = trace_text(names->trace, function->full_name);
		if (!is_managed(function))
			continue;
		const struct managed_wait *wait = managed_wait_of(name);
		if ((!wait && !text_begins_with(name, "System.Threading.")) ||
			managed_wait_is_runner(name))
			break;
		if (wait && !(wait->alone && found)) {
			found = wait;
			*ret_at = i;
		}
	}
	return found;
}

/* Whether the function is the first one of a thread. */
static bool begins_thread(const char *name)
{
	return text_begins_with(name, "start_thread") || text_begins_with(name, "clone") ||
	       text_begins_with(name, "__libc_start_");
}

/* The last one of the adjacent frames of libc that begin at `user`. */
static uint32_t outermost_libc(const struct symbolmap *names, const uint32_t *functions,
	uint32_t user, uint32_t end)
{
	uint32_t i = user;

	for (; i + 1 < end; i++) {
		const struct function *next = &names->functions.items[functions[i + 1]];
		if (next->module != names->functions.items[functions[user]].module ||
			begins_thread(trace_text(names->trace, next->name)))
			break;
	}
	return i;
}

static enum block_cause managed_cause(const struct managed_wait *wait)
{
	if (wait->lock)
		return BLOCK_LOCK;
	if (text_begins_with(wait->method, "System.Threading.Thread.Sleep"))
		return BLOCK_SLEEP;
	if (text_begins_with(wait->method, "System.Threading.Tasks."))
		return BLOCK_TASK;
	return BLOCK_EVENT;
}

void wait_place_find(const struct symbolmap *names, const uint32_t *functions, uint32_t count,
	struct wait_place *ret_place)
{
	uint32_t user;
	uint32_t at = 0;
	struct wait_place place = { 0 };
	uint32_t own = find_own(names, functions, count);
	const struct managed_wait *wait = find_managed_wait(names, functions, count, &at);

	place.cause = kernel_cause(names, functions, count, &user, &place.idle);
	if (own < count)
		place.where = functions[own];
	if (wait && place.cause != BLOCK_PAGE_FAULT) {
		place.wait = functions[at];
		/* A thread that the program's method calls into the pool has work. */
		place.idle = wait->idle && own == count;
		place.cause = managed_cause(wait);
	} else if (user < own) {
		/* the library's function that the program called, or of libc what its caller called */
		uint32_t called =
			own < count ? own - 1 : outermost_libc(names, functions, user, own);
		if (names->functions.items[functions[called]].named)
			place.wait = functions[called];
	}
	for (uint32_t i = user; i < own && !wait; i++) {
		if (place.cause != BLOCK_UNKNOWN && place.cause != BLOCK_FUTEX)
			break;
		enum block_cause cause = cause_of(libc_names,
			sizeof(libc_names) / sizeof(libc_names[0]),
			trace_text(names->trace, names->functions.items[functions[i]].name));
		if (cause != BLOCK_UNKNOWN)
			place.cause = cause;
	}
	*ret_place = place;
}

const char *block_cause_words(enum block_cause cause)
{
	static const char *const words[BLOCK_CAUSE_COUNT] = {
		[BLOCK_UNKNOWN] = "unknown",
		[BLOCK_LOCK] = "lock",
		[BLOCK_FUTEX] = "futex",
		[BLOCK_EVENT] = "event",
		[BLOCK_TASK] = "task",
		[BLOCK_SLEEP] = "sleep",
		[BLOCK_NETWORK] = "network",
		[BLOCK_POLL] = "poll",
		[BLOCK_DISK] = "disk",
		[BLOCK_PIPE] = "pipe",
		[BLOCK_TERMINAL] = "terminal",
		[BLOCK_FILE_LOCK] = "file lock",
		[BLOCK_KERNEL_LOCK] = "kernel lock",
		[BLOCK_PAGE_FAULT] = "page fault",
		[BLOCK_CHILD] = "child process",
		[BLOCK_SIGNAL] = "signal",
		[BLOCK_STOPPED] = "stopped",
		[BLOCK_PREEMPTED] = "preempted",
		[BLOCK_WORK] = "kernel work",
		[BLOCK_BEFORE] = "began before the recording",
	};

	return words[cause < BLOCK_CAUSE_COUNT ? cause : BLOCK_UNKNOWN];
}
