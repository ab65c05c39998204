/*
 * See thread_clocks.h.
 *
 * Invariants: `base_ns` of a thread is the value of its clock when its process was added (0 for a
 * thread that started later). So the CPU time of all threads since then, including ended ones, is
 * never more than that of the process's own clock, apart from the resolution of that clock (ticks).
 */
#include "pipeline/thread_clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/map.h"
#include "base/vec.h"
#include "machine/cpu_clock.h"
#include "machine/proc.h"

#define LIST_NS     UINT64_C(100000000) /* interval of looking for new threads */
#define NEAR_MAX_NS UINT64_C(200000000)
#define FAR_MAX_NS  UINT64_C(5000000000)
#define NEWBORN_NS  UINT64_C(2000000000)
/* the interval to the next round is at least this many times the cost of a round */
#define COST_SHARE    50u
#define KEPT_OPEN_MAX 1024u
/* CPU time of a process beyond that of its threads; less is within the resolution of its clock */
#define REST_MIN_TICKS 2u

struct clocked_thread {
	uint32_t tid;
	int fd; /* -1: opened for each reading */
	uint64_t base_ns;
	uint64_t cpu_ns;
	uint64_t read_ns;
	uint64_t reported_ns;
	bool seen; /* in the current listing */
};

struct clocked {
	uint32_t pid;
	bool near;
	bool gone;
	/*
	 * its end was reported, but its parent has not waited for it: stays in the list so that it
	 * is not added again
	 */
	bool over;
	uint64_t near_until_ns; /* read often until then, because it may be short-lived */
	uint64_t start_ticks;
	uint64_t base_ns;
	uint64_t cpu_ns;    /* by the process's own clock */
	uint64_t ended_ns;  /* used by threads that have ended */
	uint64_t rest_ns;   /* reported for thread 0: not covered by other threads */
	uint64_t unseen_ns; /* reported for thread 0: used by ended children between readings */
	uint64_t rest_read_ns;
	uint64_t added_ns;
	uint32_t parent_pid;
	uint64_t children_base_ns;
	uint64_t children_ns; /* of children that it has waited for, by its own clock */
	/* children_ns one reading earlier: the children counted there have been removed */
	uint64_t children_before_ns;
	uint64_t children_seen_ns; /* CPU time that was reported for those children */
	uint64_t listed_ns;
	VEC(struct clocked_thread) threads;
};

struct thread_clocks {
	struct thread_clocks_handler handler;
	void *context;
	struct proc_reader proc;
	VEC(struct clocked) list;
	struct map by_pid;  /* pid -> list index + 1 */
	struct id_list ids; /* scratch */
	uint32_t open_count;
	uint32_t open_max;
	uint32_t cpu_count;
	uint64_t near_ns; /* time of the next round of each kind */
	uint64_t far_ns;
};

uint64_t thread_clocks_spent_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

int thread_clocks_new(const struct thread_clocks_handler *handler, void *context,
	struct thread_clocks **ret_clocks)
{
	struct thread_clocks *clocks = calloc(1, sizeof(*clocks));
	struct rlimit limit;

	if (!clocks)
		return -ENOMEM;
	clocks->handler = *handler;
	clocks->context = context;
	clocks->open_max = KEPT_OPEN_MAX;
	clocks->cpu_count = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	/* Leaves descriptors for the sockets and files of targets. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < clocks->open_max)
		clocks->open_max = (uint32_t)(limit.rlim_cur / 4);
	int result = proc_open(&clocks->proc, NULL);
	if (result < 0) {
		free(clocks);
		return result;
	}
	*ret_clocks = clocks;
	return 0;
}

/* ---- threads ---- */

static void tell(struct thread_clocks *clocks, const struct clocked *process,
	struct clocked_thread *thread, uint64_t now_ns, uint64_t cpu_ns)
{
	if (cpu_ns <= thread->cpu_ns) {
		thread->read_ns = now_ns;
		return;
	}
	if (thread->read_ns > thread->reported_ns)
		clocks->handler.clock(clocks->context, process->pid, thread->tid, thread->read_ns,
			thread->cpu_ns);
	clocks->handler.clock(clocks->context, process->pid, thread->tid, now_ns, cpu_ns);
	thread->cpu_ns = cpu_ns;
	thread->read_ns = thread->reported_ns = now_ns;
}

static void close_thread(struct thread_clocks *clocks, struct clocked_thread *thread)
{
	if (thread->fd < 0)
		return;
	close(thread->fd);
	thread->fd = -1;
	clocks->open_count--;
}

static bool is_near(const struct clocked *process, uint64_t now_ns)
{
	return !process->over && (process->near || now_ns < process->near_until_ns);
}

/* Reads a thread's clock. Keeps its descriptor open if it is near and open_max allows it. */
static int read_thread(struct thread_clocks *clocks, const struct clocked *process,
	struct clocked_thread *thread, uint64_t *ret_cpu_ns)
{
	int fd = thread->fd;

	if (fd < 0) {
		int result = thread_clock_open(&clocks->proc, process->pid, thread->tid, &fd);
		if (result < 0)
			return result;
	}
	int result = thread_clock_read(&clocks->proc, fd, ret_cpu_ns);

	if (thread->fd >= 0)
		return result;
	if (result == 0 && process->near && clocks->open_count < clocks->open_max) {
		thread->fd = fd;
		clocks->open_count++;
	} else {
		close(fd);
	}
	return result;
}

static void end_thread(struct thread_clocks *clocks, struct clocked *process, uint32_t at)
{
	struct clocked_thread *thread = &process->threads.items[at];

	close_thread(clocks, thread);
	process->ended_ns += thread->cpu_ns - thread->base_ns;
	if (clocks->handler.ended && thread->tid != process->pid)
		clocks->handler.ended(clocks->context, process->pid, thread->tid);
	*thread = *vec_last(&process->threads);
	process->threads.count--;
}

static void read_threads(struct thread_clocks *clocks, struct clocked *process)
{
	for (uint32_t i = 0; i < process->threads.count;) {
		struct clocked_thread *thread = &process->threads.items[i];
		uint64_t cpu_ns;
		int result = read_thread(clocks, process, thread, &cpu_ns);
		if (result == -ESRCH || result == -ENOENT) {
			end_thread(clocks, process, i);
			continue;
		}
		if (result == 0)
			tell(clocks, process, thread, clock_monotonic_ns(), cpu_ns);
		i++;
	}
}

/* Adds a new thread. `from_ns`: all its CPU time, as used since then; 0: only from now on. */
static void add_thread(struct thread_clocks *clocks, struct clocked *process, uint32_t tid,
	uint64_t from_ns)
{
	struct clocked_thread thread = { .tid = tid, .fd = -1, .seen = true };
	uint64_t cpu_ns;

	if (read_thread(clocks, process, &thread, &cpu_ns) < 0)
		return; /* it has ended; the process's own clock contains its CPU time */
	uint64_t now_ns = clock_monotonic_ns();

	if (!vec_reserve(&process->threads, 1)) {
		close_thread(clocks, &thread);
		return; /* without memory, as above */
	}
	thread.base_ns = thread.cpu_ns = from_ns ? 0 : cpu_ns;
	thread.read_ns = thread.reported_ns = from_ns ? from_ns : now_ns;
	clocks->handler.clock(clocks->context, process->pid, tid, thread.read_ns, thread.cpu_ns);
	tell(clocks, process, &thread, now_ns, cpu_ns);
	process->threads.items[process->threads.count++] = thread;
}

/* Adds new threads, removes ended ones. Both lists are usually in the order of thread starts. */
static void list_threads(struct thread_clocks *clocks, struct clocked *process, uint64_t from_ns)
{
	uint32_t known = process->threads.count;
	uint32_t hint = 0;

	vec_reset(&clocks->ids.ids);
	if (proc_list_threads(&clocks->proc, process->pid, &clocks->ids) < 0)
		return; /* it has ended; the next reading of its own clock finds out */
	process->listed_ns = clock_monotonic_ns();
	for (uint32_t i = 0; i < known; i++)
		process->threads.items[i].seen = false;
	for (uint32_t i = 0; i < clocks->ids.ids.count; i++) {
		uint32_t tid = clocks->ids.ids.items[i];
		uint32_t at = 0;
		while (at < known && process->threads.items[(hint + at) % known].tid != tid)
			at++;
		if (at == known) {
			add_thread(clocks, process, tid, from_ns);
			continue;
		}
		hint = (hint + at) % known;
		process->threads.items[hint].seen = true;
		hint = (hint + 1) % known;
	}
	for (uint32_t i = process->threads.count; i-- > 0;)
		if (!process->threads.items[i].seen)
			end_thread(clocks, process, i);
}

/* ---- processes ---- */

static struct clocked *find(const struct thread_clocks *clocks, uint32_t pid)
{
	uint32_t at = map_get(&clocks->by_pid, pid);

	return at ? &clocks->list.items[at - 1] : NULL;
}

bool thread_clocks_has(const struct thread_clocks *clocks, uint32_t pid)
{
	return find(clocks, pid) != NULL;
}

int thread_clocks_add(struct thread_clocks *clocks, uint32_t pid, bool near, uint64_t now_ns,
	bool newborn)
{
	struct clocked *process = find(clocks, pid);
	struct process_clock clock;

	if (process) {
		process->near |= near;
		return 0;
	}
	int result = process_clock_read(&clocks->proc, pid, &clock);
	if (result < 0)
		return result;
	process = vec_push(&clocks->list);
	if (!process || !map_add(&clocks->by_pid, pid, clocks->list.count)) {
		clocks->list.count -= process != NULL;
		return -ENOMEM;
	}
	process->pid = pid;
	process->near = near;
	process->near_until_ns = newborn ? now_ns + NEWBORN_NS : 0;
	process->start_ticks = clock.start_ticks;
	process->cpu_ns = clock.cpu_ns;
	process->base_ns = newborn ? 0 : clock.cpu_ns;
	process->parent_pid = clock.parent_pid;
	process->children_ns = process->children_before_ns = clock.children_ns;
	process->children_base_ns = newborn ? 0 : clock.children_ns;
	process->rest_read_ns = process->added_ns = now_ns;
	clocks->handler.clock(clocks->context, pid, 0, now_ns, 0);
	list_threads(clocks, process, newborn ? now_ns : 0);
	return 0;
}

/* CPU time reported for the process, including its ended threads. */
static uint64_t seen_of(const struct clocked *process)
{
	uint64_t seen_ns = process->ended_ns + process->rest_ns;

	for (uint32_t i = 0; i < process->threads.count; i++)
		seen_ns += process->threads.items[i].cpu_ns - process->threads.items[i].base_ns;
	return seen_ns;
}

/* CPU time of a clock beyond the reported time; 0 if it is within the clock's resolution. */
static uint64_t beyond(const struct thread_clocks *clocks, uint64_t own_ns, uint64_t seen_ns)
{
	return own_ns >= seen_ns + REST_MIN_TICKS * clocks->proc.tick_ns ? own_ns - seen_ns : 0;
}

/*
 * Reports the CPU time of a process beyond that of its threads, and of its children beyond the time
 * reported for them. Returns the sum.
 */
static uint64_t tell_rest(struct thread_clocks *clocks, struct clocked *process, uint64_t now_ns)
{
	uint64_t rest_ns = beyond(clocks, process->cpu_ns - process->base_ns, seen_of(process));
	uint64_t unseen_ns = 0;

	if (clocks->handler.children && process->children_before_ns > process->children_base_ns)
		unseen_ns = beyond(clocks, process->children_before_ns - process->children_base_ns,
			process->children_seen_ns + process->unseen_ns);
	/*
	 * A child may have started before the recording and ended before it was found; its CPU time
	 * is limited to the capacity of all CPUs since then.
	 */
	uint64_t most_ns = (now_ns - process->added_ns) * clocks->cpu_count;
	if (process->unseen_ns + unseen_ns > most_ns)
		unseen_ns = most_ns > process->unseen_ns ? most_ns - process->unseen_ns : 0;

	if (rest_ns || unseen_ns) {
		uint64_t reported_ns = process->rest_ns + process->unseen_ns;
		clocks->handler.clock(clocks->context, process->pid, 0, process->rest_read_ns,
			reported_ns);
		clocks->handler.clock(clocks->context, process->pid, 0, now_ns,
			reported_ns + rest_ns + unseen_ns);
		process->rest_ns += rest_ns;
		process->unseen_ns += unseen_ns;
	}
	process->rest_read_ns = now_ns;
	return rest_ns + unseen_ns;
}

/* Called for an ended process: adds its CPU time to the time reported for its parent's children. */
static void tell_parent(const struct thread_clocks *clocks, const struct clocked *process)
{
	struct clocked *parent = find(clocks, process->parent_pid);

	if (parent)
		parent->children_seen_ns += process->base_ns + seen_of(process) +
					    process->children_base_ns + process->unseen_ns +
					    process->children_seen_ns;
}

/*
 * Reads a process's own clock, and its threads if that has advanced. Returns false if its end was
 * reported before and its parent has waited for it now.
 */
static bool read_far(struct thread_clocks *clocks, struct clocked *process)
{
	struct process_clock clock;

	if (process_clock_read(&clocks->proc, process->pid, &clock) < 0 ||
		clock.start_ticks != process->start_ticks) {
		process->gone = true;
		return !process->over;
	}
	if (process->over)
		return true;
	bool worked = clock.cpu_ns > process->cpu_ns;

	if (worked) {
		uint64_t since_ns = process->listed_ns;
		process->cpu_ns = clock.cpu_ns;
		read_threads(clocks, process);
		list_threads(clocks, process, since_ns);
	}
	process->parent_pid = clock.parent_pid;
	process->children_before_ns = process->children_ns;
	process->children_ns = clock.children_ns;
	for (uint32_t i = 0; i < process->threads.count && !is_near(process, clock_monotonic_ns());
		i++)
		/* its time as a newborn process is over */
		close_thread(clocks, &process->threads.items[i]);
	/*
	 * The main thread may end before the others: the process is a zombie then, but still runs.
	 */
	if (proc_state_has_ended(clock.state) && clock.thread_count <= 1) {
		process->gone = true;
		process->over = true;
		/* its children are complete now */
		process->children_before_ns = process->children_ns;
	}
	if (!process->gone && clocks->handler.alive)
		clocks->handler.alive(clocks->context, process->pid, clock.comm, worked);
	return true;
}

static void forget_threads(struct thread_clocks *clocks, struct clocked *process)
{
	for (uint32_t i = 0; i < process->threads.count; i++)
		close_thread(clocks, &process->threads.items[i]);
	vec_done(&process->threads);
}

static void forget(struct thread_clocks *clocks, uint32_t at)
{
	struct clocked *process = &clocks->list.items[at];
	struct clocked *last = vec_last(&clocks->list);

	forget_threads(clocks, process);
	map_remove(&clocks->by_pid, process->pid, at + 1);
	if (last != process) {
		map_remove(&clocks->by_pid, last->pid, clocks->list.count);
		/* there is room: two entries were removed */
		(void)map_add(&clocks->by_pid, last->pid, at + 1);
	}
	*process = *last;
	clocks->list.count--;
}

uint64_t thread_clocks_next_ns(uint64_t begin_ns, uint64_t cost_ns, uint64_t least_ns,
	uint64_t most_ns)
{
	uint64_t wait_ns = cost_ns * COST_SHARE;

	return begin_ns + (wait_ns < least_ns ? least_ns : wait_ns > most_ns ? most_ns : wait_ns);
}

static void read_near_ones(struct thread_clocks *clocks, uint64_t now_ns)
{
	vec_each(process, &clocks->list) {
		if (!is_near(process, now_ns))
			continue;
		read_threads(clocks, process);
		if (now_ns >= process->listed_ns + LIST_NS)
			list_threads(clocks, process, process->listed_ns);
	}
}

static void read_all_far(struct thread_clocks *clocks)
{
	/* Callbacks may add processes: the list may be reallocated, but its indexes stay valid. */
	for (uint32_t i = clocks->list.count; i-- > 0;)
		if (!read_far(clocks, &clocks->list.items[i]))
			forget(clocks, i);
	for (uint32_t i = 0; i < clocks->list.count; i++)
		if (clocks->list.items[i].gone)
			tell_parent(clocks, &clocks->list.items[i]);
	for (uint32_t i = clocks->list.count; i-- > 0;) {
		struct clocked *process = &clocks->list.items[i];
		if (!process->gone)
			continue;
		uint64_t more_ns = tell_rest(clocks, process, clock_monotonic_ns());
		struct clocked *parent = find(clocks, process->parent_pid);
		if (parent)
			parent->children_seen_ns += more_ns;
		uint32_t pid = process->pid;
		process->gone = false;
		if (process->over)
			forget_threads(clocks, process);
		else
			forget(clocks, i);
		if (clocks->handler.ended)
			clocks->handler.ended(clocks->context, pid, 0);
	}
	for (uint32_t i = 0; i < clocks->list.count; i++)
		if (!clocks->list.items[i].over)
			/* after all ended processes have been handled */
			(void)tell_rest(clocks, &clocks->list.items[i], clock_monotonic_ns());
}

uint64_t thread_clocks_wake_ns(const struct thread_clocks *clocks)
{
	bool near = false;

	for (uint32_t i = 0; i < clocks->list.count && !near; i++)
		near = is_near(&clocks->list.items[i], clocks->near_ns);
	return near && clocks->near_ns < clocks->far_ns ? clocks->near_ns : clocks->far_ns;
}

void thread_clocks_read(struct thread_clocks *clocks, uint64_t now_ns)
{
	uint64_t before_ns = thread_clocks_spent_ns();

	if (now_ns >= clocks->near_ns) {
		read_near_ones(clocks, now_ns);
		clocks->near_ns = thread_clocks_next_ns(now_ns,
			thread_clocks_spent_ns() - before_ns, THREAD_CLOCKS_NEAR_NS, NEAR_MAX_NS);
		before_ns = thread_clocks_spent_ns();
	}
	if (now_ns >= clocks->far_ns) {
		read_all_far(clocks);
		clocks->far_ns = thread_clocks_next_ns(now_ns, thread_clocks_spent_ns() - before_ns,
			THREAD_CLOCKS_FAR_NS, FAR_MAX_NS);
	}
}

void thread_clocks_read_all(struct thread_clocks *clocks, uint64_t now_ns)
{
	read_near_ones(clocks, now_ns);
	read_all_far(clocks);
}

void thread_clocks_read_last(struct thread_clocks *clocks, uint64_t now_ns)
{
	thread_clocks_read_all(clocks, now_ns);
	/* the parents may have waited for children between two readings; those are removed now */
	read_all_far(clocks);
}

void thread_clocks_free(struct thread_clocks *clocks)
{
	if (!clocks)
		return;
	while (clocks->list.count)
		forget(clocks, clocks->list.count - 1);
	vec_done(&clocks->list);
	vec_done(&clocks->ids.ids);
	map_done(&clocks->by_pid);
	proc_close(&clocks->proc);
	free(clocks);
}
