/* See live_clocks.h. */
#include "recording/live_clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/map.h"
#include "base/vec.h"
#include "pipeline/relay.h"
#include "pipeline/thread_clocks.h"
#include "recording/process_table.h"
#include "recording/live_state.h"
#include "recording/managed.h"
#include "trace/clock_join.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"

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
#define COUNT_SHIFT   48u
#define COUNT_MAX     UINT64_C(0xffff)
#define NS_MAX        ((UINT64_C(1) << COUNT_SHIFT) - 1)

struct young {
	uint32_t pid;
	uint64_t since_ns;
};

struct live_clocks {
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

static bool is_chosen_thread(const struct live *live, uint32_t tid)
{
	for (size_t i = 0; i < live->options.tid_count; i++)
		if (live->options.tids[i] == tid)
			return true;
	return !live->options.tid_count;
}

static void on_clock(void *context, uint32_t pid, uint32_t tid, uint64_t time_ns, uint64_t cpu_ns)
{
	struct live *live = context;

	if (is_chosen_thread(live, tid))
		/* without memory: one longer interval */
		(void)clock_join_clock(&live->cpu_clocks->join, key_of(pid, tid), time_ns, cpu_ns);
}

/*
 * Checks a new stack for code that was mapped after the last reading of the mappings; if there is
 * any, they are read again while the process lives.
 */
static void look_at_stack(struct live *live, uint32_t process, uint32_t stack)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint32_t count;
	const uint64_t *frames = stack_table_get(&live->trace.stacks, stack, &count);
	bool mapped = true;

	if (now_ns < live->processes.items[process].looked_ns + MAPS_GAP_NS)
		return; /* a later sample with this stack checks it */
	for (uint32_t i = 0; mapped && i < count; i++)
		mapped = trace_find_mapping(&live->trace, process, frames[i]) != 0;
	if (!mapped) {
		live->processes.items[process].looked_ns = now_ns;
		process_table_read_mappings(live, process);
	}
	live->processes.items[process].stacks_seen = stack + 1;
}

/*
 * Handles a sample of a runtime. After the first one of a process, its clocks are read more often.
 */
static void on_sampled(void *context, uint32_t process, uint32_t tid, uint64_t time_ns,
	uint32_t stack, bool runs)
{
	struct live *live = context;
	uint32_t pid = live->trace.processes.items[process].pid;
	struct live_process *own = &live->processes.items[process];

	if (!own->wanted || (live->writer.end_ns && time_ns > live->writer.end_ns) ||
		!is_chosen_thread(live, tid))
		return;
	if (!own->sampled && !live->writer.end_ns)
		own->sampled = thread_clocks_add(live->cpu_clocks->reader, pid, true,
				       clock_monotonic_ns(), false) == 0;
	if (stack >= own->stacks_seen)
		look_at_stack(live, process, stack);
	/* without memory: its CPU time goes to the thread's other samples */
	(void)clock_join_sample(&live->cpu_clocks->join, key_of(pid, tid), time_ns, stack, runs);
}

/* ---- processes ---- */

static uint64_t exe_hash(struct live *live, uint32_t pid)
{
	const char *path;
	size_t len;

	return proc_read_exe(&live->proc, pid, &path, &len) == 0 ? hash_bytes(path, len) : 0;
}

/* Records that the process has executed another program. */
static void become(struct live *live, uint32_t pid, const char *comm)
{
	struct pending item = { .time_ns = clock_monotonic_ns(),
		.pid = pid,
		.tid = pid,
		.value = live_text(live, comm, strlen(comm)),
		.flag = true };

	if (!live->window.items.count || live->window.watermark_ns > item.time_ns)
		item.time_ns = live->window.watermark_ns;
	process_table_comm(live, &item);
}

/*
 * Called for a running process. An exec is detected by its changed name and executable. Libraries
 * that were loaded later, such as a .NET runtime, are found by reading the mappings again, at
 * intervals that double while the process uses CPU time.
 */
static void on_alive(void *context, uint32_t pid, const char *comm, bool worked)
{
	struct live *live = context;
	uint32_t process = process_table_find(live, pid);
	uint64_t now_ns = clock_monotonic_ns();

	if (!process)
		return;
	struct live_process *own = &live->processes.items[process];
	uint64_t comm_hash = hash_bytes(comm, strlen(comm));
	bool look = worked && now_ns >= own->looked_ns + own->look_gap_ns;

	if (comm_hash != own->comm_hash || (look && own->look_gap_ns < YOUNG_NS)) {
		uint64_t exe = exe_hash(live, pid);
		bool other = exe != own->exe_hash || (!exe && comm_hash != own->comm_hash);
		if (other) {
			become(live, pid, comm);
			process = process_table_find(live, pid);
			own = &live->processes.items[process];
			own->look_gap_ns = LOOK_MIN_NS;
			look = true;
		}
		own->comm_hash = comm_hash;
		own->exe_hash = exe;
	}
	struct symbolizer_process *names = symbolizer_process(&live->symbolizer, process);
	bool unmapped = names && names->unmapped;

	if (!look && !unmapped)
		return;
	if (names)
		names->unmapped = false;
	own->looked_ns = now_ns;
	if (!unmapped && own->look_gap_ns < LOOK_MAX_NS)
		own->look_gap_ns *= 2;
	process_table_read_mappings(live, process);
}

static void on_ended(void *context, uint32_t pid, uint32_t tid)
{
	struct live *live = context;
	struct pending *item = reorder_window_add(&live->window);

	/* without memory: its data is kept a little longer */
	(void)map_put(&live->cpu_clocks->ended, key_of(pid, tid), 1);
	if (!item)
		return; /* its slot is not reused */
	item->kind = PENDING_EXIT;
	item->time_ns = clock_monotonic_ns();
	item->pid = pid;
	item->tid = tid ? tid : pid;
	item->cpu = EVENT_CPU_UNKNOWN;
}

static void add_process(struct live *live, uint32_t process, bool newborn, uint64_t now_ns)
{
	struct live_clocks *clocks = live->cpu_clocks;
	uint32_t pid = live->trace.processes.items[process].pid;
	struct live_process *own = &live->processes.items[process];
	const char *name = trace_text(&live->trace, live->trace.processes.items[process].name);

	if (!own->wanted || thread_clocks_add(clocks->reader, pid, false, now_ns, newborn) < 0)
		return;
	own->comm_hash = hash_bytes(name, strlen(name));
	own->exe_hash = exe_hash(live, pid);
	own->looked_ns = now_ns;
	own->look_gap_ns = newborn || pid == live->child.pid ? LOOK_MIN_NS : LOOK_MAX_NS / 2;
	if (newborn || pid == live->child.pid)
		/* without memory: an exec is noticed later */
		(void)vec_add(&clocks->young, ((struct young){ .pid = pid, .since_ns = now_ns }));
}

/*
 * /proc gives the start time in clock ticks, rounded down. Two ticks of tolerance count a process
 * as new if it started at about the begin of the recording.
 */
static bool is_newborn(const struct live *live, uint32_t process)
{
	return live->trace.processes.items[process].begin_ns + 2 * live->proc.tick_ns >=
	       live->writer.begin_ns;
}

/*
 * Adds new processes. A process that is not to be recorded is looked up two times, because its
 * parent may become known only after the first.
 */
static void scan(struct live *live, uint64_t now_ns)
{
	struct live_clocks *clocks = live->cpu_clocks;
	struct map passed_over = { 0 };

	vec_reset(&clocks->ids.ids);
	if (proc_list(&live->proc, &clocks->ids, NULL) < 0)
		return;
	for (uint32_t i = 0; i < clocks->ids.ids.count; i++) {
		uint32_t pid = clocks->ids.ids.items[i];
		uint32_t looks = map_get(&clocks->passed_over, pid);
		if (thread_clocks_has(clocks->reader, pid))
			continue;
		uint32_t process = looks < 2 ? process_table_look(live, pid) : 0;
		if (process)
			add_process(live, process, is_newborn(live, process), now_ns);
		else
			/* without memory it is looked up again */
			(void)map_put(&passed_over, pid, looks < 2 ? looks + 1 : looks);
	}
	map_done(&clocks->passed_over);
	clocks->passed_over = passed_over;
}

static void look_at_young(struct live *live, uint64_t now_ns)
{
	struct live_clocks *clocks = live->cpu_clocks;

	for (uint32_t i = clocks->young.count; i-- > 0;) {
		const struct young *young = &clocks->young.items[i];
		struct proc_process facts;
		if (now_ns > young->since_ns + YOUNG_NS ||
			proc_read(&live->proc, young->pid, &facts) < 0 || facts.state == 'Z') {
			clocks->young.items[i] = *vec_last(&clocks->young);
			clocks->young.count--;
			continue;
		}
		on_alive(live, young->pid, facts.comm, true);
	}
}

/* ---- steps ---- */

int live_clocks_open(struct live *live)
{
	static const struct thread_clocks_told told = {
		.children = true, .clock = on_clock, .alive = on_alive, .ended = on_ended
	};

	if (!live->options.instead)
		return 0;
	live->cpu_clocks = calloc(1, sizeof(*live->cpu_clocks));
	if (!live->cpu_clocks)
		return -ENOMEM;
	if (live->relay)
		managed_sample(live->managed, on_sampled);
	return thread_clocks_new(&told, live, &live->cpu_clocks->reader);
}

void live_clocks_start(struct live *live)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!live->cpu_clocks)
		return;
	for (uint32_t i = 1; i < live->trace.processes.count; i++)
		if (i < live->processes.count && !live->trace.processes.items[i].ended)
			add_process(live, i, false, now_ns);
	live->cpu_clocks->scan_ns = now_ns + SCAN_NS;
	live->cpu_clocks->settled_ns = now_ns;
}

uint64_t live_clocks_wake_ns(const struct live *live)
{
	const struct live_clocks *clocks = live->cpu_clocks;
	uint64_t wake_ns = thread_clocks_wake_ns(clocks->reader);

	if (live->writer.end_ns)
		return UINT64_MAX;
	if (clocks->scan_ns < wake_ns)
		wake_ns = clocks->scan_ns;
	if (clocks->young.count && clocks->young_ns < wake_ns)
		wake_ns = clocks->young_ns;
	return wake_ns;
}

static void on_share(void *context, const struct clock_share *share)
{
	struct live *live = context;
	struct pending *item = reorder_window_add(&live->window);

	if (!item)
		return; /* dropped, as a perf sample without memory is */
	item->kind = PENDING_SHARE;
	item->time_ns = share->time_ns;
	item->pid = (uint32_t)(share->thread >> 32);
	item->tid = (uint32_t)share->thread;
	item->stack_index = share->stack;
	item->value = (share->count < COUNT_MAX ? share->count : COUNT_MAX) << COUNT_SHIFT |
		      (share->cpu_ns < NS_MAX ? share->cpu_ns : NS_MAX);
	item->cpu = EVENT_CPU_UNKNOWN;
}

static bool has_ended(void *context, uint64_t thread)
{
	const struct live *live = context;

	return map_get(&live->cpu_clocks->ended, thread) != 0;
}

static void settle(struct live *live, uint64_t until_ns)
{
	struct live_clocks *clocks = live->cpu_clocks;

	clock_join_settle(&clocks->join, until_ns, on_share, live);
	clocks->settled_ns = until_ns;
	if (clocks->ended.count < 64)
		return;
	clock_join_forget(&clocks->join, has_ended, live);
	/* a thread that still has data is settled normally; its slot in the join stays */
	map_reset(&clocks->ended);
}

void live_clocks_turn(struct live *live, uint64_t now_ns, bool soon)
{
	struct live_clocks *clocks = live->cpu_clocks;

	if (live->writer.end_ns || !live->started)
		return;
	if (now_ns >= clocks->scan_ns) {
		uint64_t before_ns = thread_clocks_spent_ns();
		scan(live, now_ns);
		clocks->scan_ns = thread_clocks_next_ns(now_ns,
			thread_clocks_spent_ns() - before_ns, SCAN_NS, UINT64_MAX);
	}
	if (clocks->young.count && now_ns >= clocks->young_ns) {
		look_at_young(live, now_ns);
		clocks->young_ns = now_ns + YOUNG_LOOK_NS;
	}
	if (soon)
		thread_clocks_read_all(clocks->reader, now_ns);
	else
		thread_clocks_read(clocks->reader, now_ns);
	if (now_ns - SETTLE_NS > clocks->settled_ns)
		settle(live, now_ns - SETTLE_NS);
}

uint64_t live_clocks_limit_ns(const struct live *live)
{
	return live->cpu_clocks->settled_ns - INTERVAL_NS;
}

void live_clocks_stop(struct live *live)
{
	scan(live, clock_monotonic_ns());
	thread_clocks_read_last(live->cpu_clocks->reader, clock_monotonic_ns());
}

void live_clocks_finish(struct live *live)
{
	settle(live, UINT64_MAX);
}

/* ---- leaving the window ---- */

void live_clocks_hand_over(struct live *live, const struct pending *item)
{
	uint32_t process = process_table_process(live, item->pid);
	uint64_t weight_ns = item->value & NS_MAX;
	uint64_t count = item->value >> COUNT_SHIFT;
	uint32_t stack = item->stack_index;

	if (!process)
		return;
	if (session_writer_is_full(&live->writer)) {
		live->samples_cut += count ? count : 1;
		return;
	}
	process_table_announce(live, process);
	uint32_t thread =
		process_table_thread(live, process, item->pid, item->tid ? item->tid : item->pid);

	if (stack)
		/* without memory the name is missing, and counted */
		(void)symbolizer_hit(&live->symbolizer, process, stack, item->time_ns, &stack);
	live->carry_ns += weight_ns;
	payload_cpu(&live->writer.payload,
		&(struct payload_cpu){ .value = live->carry_ns / 1000000,
			.weight_ns = weight_ns,
			.count = count ? count : 1,
			.flags = SAMPLE_USER_ONLY },
		0);
	live->carry_ns %= 1000000;
	session_writer_emit(&live->writer, EVENTS_CPU,
		(struct event){ .time_ns = item->time_ns,
			.value = weight_ns,
			.thread_index = thread,
			.stack_index = stack,
			.cpu = EVENT_CPU_UNKNOWN });
	live->samples++;
}

void live_clocks_move_stacks(struct live *live, struct stack_table *fresh)
{
	for (uint32_t i = 0; i < live->processes.count; i++)
		live->processes.items[i].stacks_seen = 0;
	clock_join_move_stacks(&live->cpu_clocks->join, &live->trace.stacks, fresh);
}

uint64_t live_clocks_size_bytes(const struct live *live)
{
	return clock_join_size_bytes(&live->cpu_clocks->join);
}

void live_clocks_close(struct live *live)
{
	struct live_clocks *clocks = live->cpu_clocks;

	if (!clocks)
		return;
	thread_clocks_free(clocks->reader);
	clock_join_done(&clocks->join);
	map_done(&clocks->ended);
	map_done(&clocks->passed_over);
	vec_done(&clocks->young);
	vec_done(&clocks->ids.ids);
	free(clocks);
	live->cpu_clocks = NULL;
}
