/* See live_clocks.h. */
#include "recording/live_clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/map.h"
#include "base/vec.h"
#include "machine/proc.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "pipeline/thread_clocks.h"
#include "recording/live_options.h"
#include "recording/managed.h"
#include "recording/process_table.h"
#include "recording/samples.h"
#include "symbolize/symbolizer.h"
#include "trace/clock_join.h"
#include "trace/event.h"
#include "trace/trace.h"

/* samples older than this are complete: runtimes send them every 100 ms */
#define SETTLE_NS UINT64_C(250000000)
/* of a clock's readings: a share may be older than the last settled time by at most this */
#define INTERVAL_NS UINT64_C(100000000)
/* of looking for new processes; longer if a scan takes more than 2 % of it */
#define SCAN_NS       UINT64_C(100000000)
#define YOUNG_NS      UINT64_C(2000000000) /* age below which a process may be about to exec */
#define YOUNG_LOOK_NS UINT64_C(50000000)   /* interval of checking such a process */
#define MAPS_GAP_NS   UINT64_C(20000000)
#define LOOK_MIN_NS   UINT64_C(100000000)
#define LOOK_MAX_NS   UINT64_C(60000000000)

struct young {
	uint32_t pid;
	uint64_t since_ns;
};

struct live_clocks {
	struct process_table *table; /* borrowed */
	struct thread_clocks *reader;
	struct clock_join join;
	struct map ended; /* thread -> 1: the join frees it when it has no data left */
	/* pid -> 1, 2: number of lookups that found it is not to be recorded */
	struct map passed_over;
	VEC(struct young) young;
	struct id_list ids; /* scratch */
	uint64_t scan_ns;
	uint64_t young_ns;
	uint64_t settled_ns;
};

static uint64_t key_of(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

static bool is_chosen_thread(const struct live_clocks *clocks, uint32_t tid)
{
	for (size_t i = 0; i < clocks->table->options->tid_count; i++)
		if (clocks->table->options->tids[i] == tid)
			return true;
	return !clocks->table->options->tid_count;
}

static void on_clock(void *context, uint32_t pid, uint32_t tid, uint64_t time_ns, uint64_t cpu_ns)
{
	struct live_clocks *clocks = context;

	if (is_chosen_thread(clocks, tid))
		/* without memory: one longer interval */
		(void)clock_join_clock(&clocks->join, key_of(pid, tid), time_ns, cpu_ns);
}

/*
 * Checks a new stack for code that was mapped after the last reading of the mappings; if there is
 * any, they are read again while the process lives.
 */
static void look_at_stack(struct live_clocks *clocks, uint32_t process, uint32_t stack)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint32_t count;
	const uint64_t *frames = stack_table_get(&clocks->table->trace->stacks, stack, &count);
	bool mapped = true;

	if (now_ns < clocks->table->rows.items[process].looked_ns + MAPS_GAP_NS)
		return; /* a later sample with this stack checks it */
	for (uint32_t i = 0; mapped && i < count; i++)
		mapped = trace_find_mapping(clocks->table->trace, process, frames[i]) != 0;
	if (!mapped) {
		clocks->table->rows.items[process].looked_ns = now_ns;
		process_table_read_mappings(clocks->table, process);
	}
	clocks->table->rows.items[process].stacks_seen = stack + 1;
}

/*
 * Handles a sample of a runtime. After the first one of a process, its clocks are read more often.
 */
static void on_sampled(void *context, uint32_t process, uint32_t tid, uint64_t time_ns,
	uint32_t stack, bool runs)
{
	struct live_clocks *clocks = context;
	uint32_t pid = clocks->table->trace->processes.items[process].pid;
	struct live_process *own = &clocks->table->rows.items[process];

	if (!own->wanted ||
		(clocks->table->writer->end_ns && time_ns > clocks->table->writer->end_ns) ||
		!is_chosen_thread(clocks, tid))
		return;
	if (!own->sampled && !clocks->table->writer->end_ns)
		own->sampled = thread_clocks_add(clocks->reader, pid, true, clock_monotonic_ns(),
				       false) == 0;
	if (stack >= own->stacks_seen)
		look_at_stack(clocks, process, stack);
	/* without memory: its CPU time goes to the thread's other samples */
	(void)clock_join_sample(&clocks->join, key_of(pid, tid), time_ns, stack, runs);
}

/* ---- processes ---- */

static uint64_t exe_hash(struct live_clocks *clocks, uint32_t pid)
{
	const char *path;
	size_t len;

	return proc_read_exe(&clocks->table->proc, pid, &path, &len) == 0 ? hash_bytes(path, len)
									  : 0;
}

/* Records that the process has executed another program. */
static void become(struct live_clocks *clocks, uint32_t pid, const char *comm)
{
	struct pending item = { .time_ns = clock_monotonic_ns(),
		.pid = pid,
		.tid = pid,
		.value = strtab_add(&clocks->table->trace->strings, comm, strlen(comm)),
		.flag = true };

	if (!clocks->table->writer->window->items.count ||
		clocks->table->writer->window->watermark_ns > item.time_ns)
		item.time_ns = clocks->table->writer->window->watermark_ns;
	process_table_comm(clocks->table, &item);
}

/*
 * Called for a running process. An exec is detected by its changed name and executable. Libraries
 * that were loaded later, such as a .NET runtime, are found by reading the mappings again, at
 * intervals that double while the process uses CPU time.
 */
static void on_alive(void *context, uint32_t pid, const char *comm, bool worked)
{
	struct live_clocks *clocks = context;
	uint32_t process = process_table_find(clocks->table, pid);
	uint64_t now_ns = clock_monotonic_ns();

	if (!process)
		return;
	struct live_process *own = &clocks->table->rows.items[process];
	uint64_t comm_hash = hash_bytes(comm, strlen(comm));
	bool look = worked && now_ns >= own->looked_ns + own->look_gap_ns;

	if (comm_hash != own->comm_hash || (look && own->look_gap_ns < YOUNG_NS)) {
		uint64_t exe = exe_hash(clocks, pid);
		bool other = exe != own->exe_hash || (!exe && comm_hash != own->comm_hash);
		if (other) {
			become(clocks, pid, comm);
			process = process_table_find(clocks->table, pid);
			own = &clocks->table->rows.items[process];
			own->look_gap_ns = LOOK_MIN_NS;
			look = true;
		}
		own->comm_hash = comm_hash;
		own->exe_hash = exe;
	}
	struct symbolizer_process *names = symbolizer_process(clocks->table->symbolizer, process);
	bool unmapped = names && names->unmapped;

	if (!look && !unmapped)
		return;
	if (names)
		names->unmapped = false;
	own->looked_ns = now_ns;
	if (!unmapped && own->look_gap_ns < LOOK_MAX_NS)
		own->look_gap_ns *= 2;
	process_table_read_mappings(clocks->table, process);
}

static void on_ended(void *context, uint32_t pid, uint32_t tid)
{
	struct live_clocks *clocks = context;
	struct pending *item = reorder_window_add(clocks->table->writer->window);

	/* without memory: its data is kept a little longer */
	(void)map_put(&clocks->ended, key_of(pid, tid), 1);
	if (!item)
		return; /* its slot is not reused */
	item->kind = PENDING_EXIT;
	item->time_ns = clock_monotonic_ns();
	item->pid = pid;
	item->tid = tid ? tid : pid;
	item->cpu = EVENT_CPU_UNKNOWN;
}

static void add_process(struct live_clocks *clocks, uint32_t process, bool newborn, uint64_t now_ns)
{
	uint32_t pid = clocks->table->trace->processes.items[process].pid;
	struct live_process *own = &clocks->table->rows.items[process];
	const char *name = trace_text(clocks->table->trace,
		clocks->table->trace->processes.items[process].name);

	if (!own->wanted || thread_clocks_add(clocks->reader, pid, false, now_ns, newborn) < 0)
		return;
	own->comm_hash = hash_bytes(name, strlen(name));
	own->exe_hash = exe_hash(clocks, pid);
	own->looked_ns = now_ns;
	own->look_gap_ns =
		newborn || pid == clocks->table->command_pid ? LOOK_MIN_NS : LOOK_MAX_NS / 2;
	if (newborn || pid == clocks->table->command_pid)
		/* without memory: an exec is noticed later */
		(void)vec_add(&clocks->young, ((struct young){ .pid = pid, .since_ns = now_ns }));
}

/*
 * /proc gives the start time in clock ticks, rounded down. Two ticks of tolerance count a process
 * as new if it started at about the begin of the recording.
 */
static bool is_newborn(const struct live_clocks *clocks, uint32_t process)
{
	return clocks->table->trace->processes.items[process].begin_ns +
		       2 * clocks->table->proc.tick_ns >=
	       clocks->table->writer->begin_ns;
}

/*
 * Adds new processes. A process that is not to be recorded is looked up two times, because its
 * parent may become known only after the first.
 */
static void scan(struct live_clocks *clocks, uint64_t now_ns)
{
	struct map passed_over = { 0 };

	vec_reset(&clocks->ids.ids);
	if (proc_list(&clocks->table->proc, &clocks->ids, NULL) < 0)
		return;
	for (uint32_t i = 0; i < clocks->ids.ids.count; i++) {
		uint32_t pid = clocks->ids.ids.items[i];
		uint32_t reads = map_get(&clocks->passed_over, pid);
		if (thread_clocks_has(clocks->reader, pid))
			continue;
		uint32_t process = reads < 2 ? process_table_look(clocks->table, pid) : 0;
		if (process)
			add_process(clocks, process, is_newborn(clocks, process), now_ns);
		else
			/* without memory it is looked up again */
			(void)map_put(&passed_over, pid, reads < 2 ? reads + 1 : reads);
	}
	map_done(&clocks->passed_over);
	clocks->passed_over = passed_over;
}

static void look_at_young(struct live_clocks *clocks, uint64_t now_ns)
{

	for (uint32_t i = clocks->young.count; i-- > 0;) {
		const struct young *young = &clocks->young.items[i];
		struct proc_process facts;
		if (now_ns > young->since_ns + YOUNG_NS ||
			proc_read(&clocks->table->proc, young->pid, &facts) < 0 ||
			proc_state_has_ended(facts.state)) {
			clocks->young.items[i] = *vec_last(&clocks->young);
			clocks->young.count--;
			continue;
		}
		on_alive(clocks, young->pid, facts.comm, true);
	}
}

/* ---- steps ---- */

int live_clocks_open(struct process_table *table, bool samples, struct live_clocks **ret_clocks)
{
	static const struct thread_clocks_handler handler = {
		.children = true, .clock = on_clock, .alive = on_alive, .ended = on_ended
	};

	struct live_clocks *clocks = calloc(1, sizeof(*clocks));

	if (!clocks)
		return -ENOMEM;
	clocks->table = table;
	int result = thread_clocks_new(&handler, clocks, &clocks->reader);

	if (result < 0) {
		live_clocks_close(clocks);
		return result;
	}
	if (samples)
		managed_sample(table->managed, on_sampled, clocks);
	*ret_clocks = clocks;
	return 0;
}

void live_clocks_start(struct live_clocks *clocks)
{
	uint64_t now_ns = clock_monotonic_ns();

	for (uint32_t i = 1; i < clocks->table->trace->processes.count; i++)
		if (i < clocks->table->rows.count &&
			!clocks->table->trace->processes.items[i].ended)
			add_process(clocks, i, false, now_ns);
	clocks->scan_ns = now_ns + SCAN_NS;
	clocks->settled_ns = now_ns;
}

uint64_t live_clocks_wake_ns(const struct live_clocks *clocks)
{
	uint64_t wake_ns = thread_clocks_wake_ns(clocks->reader);

	if (clocks->table->writer->end_ns)
		return UINT64_MAX;
	if (clocks->scan_ns < wake_ns)
		wake_ns = clocks->scan_ns;
	if (clocks->young.count && clocks->young_ns < wake_ns)
		wake_ns = clocks->young_ns;
	return wake_ns;
}

static void on_share(void *context, const struct clock_share *share)
{
	struct live_clocks *clocks = context;
	struct pending *item = reorder_window_add(clocks->table->writer->window);

	if (!item)
		return; /* out of memory: the share is dropped; intake.c drops samples then, too */
	item->kind = PENDING_SHARE;
	item->time_ns = share->time_ns;
	item->pid = (uint32_t)(share->thread >> 32);
	item->tid = (uint32_t)share->thread;
	item->stack_index = share->stack;
	item->value =
		(share->count < SAMPLES_SHARE_COUNT_MAX ? share->count : SAMPLES_SHARE_COUNT_MAX)
			<< SAMPLES_SHARE_COUNT_SHIFT |
		(share->cpu_ns < SAMPLES_SHARE_NS_MAX ? share->cpu_ns : SAMPLES_SHARE_NS_MAX);
	item->cpu = EVENT_CPU_UNKNOWN;
}

static bool has_ended(void *context, uint64_t thread)
{
	const struct live_clocks *clocks = context;

	return map_get(&clocks->ended, thread) != 0;
}

static void settle(struct live_clocks *clocks, uint64_t until_ns)
{

	clock_join_settle(&clocks->join, until_ns, on_share, clocks);
	clocks->settled_ns = until_ns;
	if (clocks->ended.count < 64)
		return;
	clock_join_forget(&clocks->join, has_ended, clocks);
	/* a thread that still has data is settled normally; its slot in the join stays */
	map_reset(&clocks->ended);
}

void live_clocks_turn(struct live_clocks *clocks, uint64_t now_ns, bool soon)
{

	if (clocks->table->writer->end_ns || !clocks->settled_ns)
		return;
	if (now_ns >= clocks->scan_ns) {
		uint64_t before_ns = thread_clocks_spent_ns();
		scan(clocks, now_ns);
		clocks->scan_ns = thread_clocks_next_ns(now_ns,
			thread_clocks_spent_ns() - before_ns, SCAN_NS, UINT64_MAX);
	}
	if (clocks->young.count && now_ns >= clocks->young_ns) {
		look_at_young(clocks, now_ns);
		clocks->young_ns = now_ns + YOUNG_LOOK_NS;
	}
	if (soon)
		thread_clocks_read_all(clocks->reader, now_ns);
	else
		thread_clocks_read(clocks->reader, now_ns);
	if (now_ns - SETTLE_NS > clocks->settled_ns)
		settle(clocks, now_ns - SETTLE_NS);
}

uint64_t live_clocks_limit_ns(const struct live_clocks *clocks)
{
	return clocks->settled_ns - INTERVAL_NS;
}

void live_clocks_stop(struct live_clocks *clocks)
{
	scan(clocks, clock_monotonic_ns());
	thread_clocks_read_last(clocks->reader, clock_monotonic_ns());
}

void live_clocks_finish(struct live_clocks *clocks)
{
	settle(clocks, UINT64_MAX);
}

void live_clocks_move_stacks(struct live_clocks *clocks, struct stack_table *fresh)
{
	for (uint32_t i = 0; i < clocks->table->rows.count; i++)
		clocks->table->rows.items[i].stacks_seen = 0;
	clock_join_move_stacks(&clocks->join, &clocks->table->trace->stacks, fresh);
}

uint64_t live_clocks_size_bytes(const struct live_clocks *clocks)
{
	return clock_join_size_bytes(&clocks->join);
}

void live_clocks_close(struct live_clocks *clocks)
{

	if (!clocks)
		return;
	thread_clocks_free(clocks->reader);
	clock_join_done(&clocks->join);
	map_done(&clocks->ended);
	map_done(&clocks->passed_over);
	vec_done(&clocks->young);
	vec_done(&clocks->ids.ids);
	free(clocks);
}
