/* See diagnose_live.h. */
#include "cli/diagnose_live.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/own_function.h"
#include "analysis/runtime_gauges.h"
#include "base/bytes.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/record_outputs.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "code/managed_wait.h"
#include "diagnose/facts.h"
#include "diagnose/process_growth.h"
#include "dotnet/guard.h"
#include "pipeline/saved.h"
#include "stacks/lock_owners.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_stacks.h"
#include "stacks/thread_waits.h"
#include "trace/report.h"
#include "trace/trace.h"

#define LOOKS           3u /* at the stacks, evenly over the duration */
#define LOOK_TIMEOUT_NS UINT64_C(2000000000)
#define PROCESSES_MAX   64u
#define COUNTERS        "System.Runtime:0x0:4:EventCounterIntervalSec=1"
/* Events with stacks take a process some 10 us each: less than 50 ms of its CPU time. */
#define ACTIVITIES     "4000"
#define WORKER_NAME    ".NET TP Worker"
#define WORKER_START   "System.Threading.PortableThreadPool.WorkerThread."
#define FINALIZER_NAME ".NET Finalizer"

struct watching {
	struct diagnose_live *live;
	struct facts *facts;
	struct proc_reader proc;
	struct guard *guard;
	struct thread_stacks *stacks;
	struct thread_dump *dumps;
	struct pollfd watched;
	pid_t recorder;
	bool ended; /* the recorder was reaped, with `status` */
	int status;
};

/* ---- the recorder ---- */

static int run_recorder(const struct diagnose_live *live)
{
	struct bytes pids = { 0 };
	char duration[32];

	for (uint32_t i = 0; i < live->targets.list.count; i++)
		bytes_printf(&pids, "%s%" PRIu32, i ? "," : "", live->targets.list.items[i].pid);
	/* fits */
	(void)snprintf(duration, sizeof(duration), "%" PRIu64 "ms", live->duration_ns / 1000000);
	/* a verb's argv is not const; it does not write there */
	char *words[] = { (char *)"record", (char *)"-q", (char *)"-p", (char *)bytes_z(&pids),
		(char *)"--duration", duration, (char *)"-o", (char *)live->path,
		(char *)"--providers", (char *)COUNTERS, (char *)"--event-stacks",
		(char *)"--activities", (char *)ACTIVITIES, NULL };
	int code = verb_find("record")->run(verb_find("record"),
		(int)(sizeof(words) / sizeof(words[0])) - 1, words);
	bytes_done(&pids);
	return code;
}

static int start_recorder(struct watching *w, struct diag *diag)
{
	fflush(stdout);
	w->recorder = fork();
	if (w->recorder < 0)
		return diag_set(diag, -errno, "cannot start the recorder: %m");
	if (w->recorder == 0)
		_exit(run_recorder(w->live));
	return 0;
}

static void reap_recorder(struct watching *w, int options)
{
	while (!w->ended) {
		pid_t pid = waitpid(w->recorder, &w->status, options);
		if (pid == w->recorder || (pid < 0 && errno != EINTR))
			w->ended = true;
		else if (pid == 0)
			return;
	}
}

/* Signals of the keyboard have reached the recorder too; others are passed on. */
static void take_signals(struct watching *w)
{
	struct interrupt taken;

	while (interrupt_take(&taken))
		if (taken.signal != SIGCHLD && !taken.from_keyboard && !w->ended)
			kill(w->recorder, taken.signal);
	reap_recorder(w, WNOHANG);
}

static void wait_until(struct watching *w, uint64_t time_ns)
{
	for (uint64_t now_ns; !w->ended && (now_ns = clock_monotonic_ns()) < time_ns;)
		if (poll_one(w->watched.fd, POLLIN, clock_left_ms(time_ns, now_ns)))
			take_signals(w);
}

/* ---- the looks ---- */

static bool copy_frames(struct facts *facts, const struct thread_dump *dump, uint32_t stack,
	struct stack_looks *looks)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, stack, &count);

	for (uint32_t i = 0; i < count; i++) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		const char *name = strtab_get(&dump->texts, frame->name);
		const char *shown =
			frame->short_name ? strtab_get(&dump->texts, frame->short_name) : name;
		const struct look_frame copy = { .name = facts_add_method(facts, shown),
			.own = dump_frame_is_managed(frame) &&
			       own_method(name, strtab_get(&dump->texts, frame->module)) };
		if (!look_add_frame(looks, copy))
			return false;
	}
	return true;
}

/* The framework's method that the program's own called, if it waits for a file or socket; else 0. */
static uint32_t find_io(struct facts *facts, const struct thread_dump *dump,
	const struct dump_thread *thread)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, thread->stack, &count);
	const struct dump_frame *called = NULL;
	bool is_io = false;

	if (thread->state == 'R' || thread->mode != THREAD_NATIVE || thread->moved)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		const char *name = strtab_get(&dump->texts, frame->name);
		if (!dump_frame_is_managed(frame))
			continue;
		if (managed_wait_is_runner(name) ||
			own_method(name, strtab_get(&dump->texts, frame->module)))
			break;
		is_io |= managed_wait_is_io(name);
		called = frame;
	}
	return is_io ? facts_add_method(facts,
			       strtab_get(&dump->texts,
				       called->short_name ? called->short_name : called->name))
		     : 0;
}

/*
 * A thread has the name of the one that started it until it gets its own, so the name decides only
 * where the stack has no .NET methods.
 */
static bool is_worker(const struct thread_dump *dump, const struct dump_thread *thread)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, thread->stack, &count);
	bool is_managed = false;

	for (uint32_t i = 0; i < count; i++) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		if (strncmp(strtab_get(&dump->texts, frame->name), WORKER_START,
			    sizeof(WORKER_START) - 1) == 0)
			return true;
		is_managed |= dump_frame_is_managed(frame);
	}
	return !is_managed && strcmp(strtab_get(&dump->texts, thread->name), WORKER_NAME) == 0;
}

static bool copy_dump(struct facts *facts, const struct thread_dump *dump,
	struct stack_looks *looks)
{
	looks->count++;
	for (uint32_t i = 0; i < dump->threads.count; i++) {
		const struct dump_thread *thread = &dump->threads.items[i];
		const char *name = strtab_get(&dump->texts, thread->name);
		const char *waits = strtab_get(&dump->texts, thread->waits_for);
		const struct look_thread copy = { .tid = thread->tid,
			.waits_for = strtab_add_z(&facts->texts, waits),
			.lock_owner = thread->lock_owner,
			.cpu_ns = thread->cpu_ns,
			.is_worker = is_worker(dump, thread),
			.is_finalizer = strcmp(name, FINALIZER_NAME) == 0 && thread->managed_count,
			.is_idle = thread->idle,
			.waits_for_lock = thread->waits_for_lock,
			.waits_for_task = strcmp(waits, "for a task") == 0,
			.io = strcmp(waits, "for a task") == 0 ? 0 : find_io(facts, dump, thread) };
		if (thread->serves_session)
			continue;
		if (!look_add_thread(looks, &copy) ||
			!copy_frames(facts, dump, thread->stack, looks))
			return false;
	}
	return true;
}

static void read_uses(struct watching *w)
{
	for (uint32_t i = 0; i < w->live->processes.count; i++) {
		struct live_process *process = &w->live->processes.items[i];
		if (process->use_count < LIVE_USES_MAX &&
			process_use_read(&w->proc, w->live->targets.list.items[i].pid,
				&process->uses[process->use_count]) == 0)
			process->use_count++;
	}
}

/* A process that gives no stacks keeps its other facts. */
static int look(struct watching *w, struct diag *diag)
{
	struct targets *targets = &w->live->targets;
	int result = thread_stacks_take(w->stacks, targets->list.items, targets->list.count,
		w->dumps, diag);
	bool no_memory = result == -ENOMEM;

	for (uint32_t i = 0; i < targets->list.count; i++) {
		struct thread_dump *dump = &w->dumps[i];
		if (result == 0 && !dump->unsampled_reason && !no_memory) {
			no_memory = thread_waits_find(dump) < 0;
			lock_owners_find(dump);
			no_memory |= !copy_dump(w->facts, dump, &w->live->processes.items[i].looks);
		}
		thread_dump_done(dump);
	}
	take_signals(w);
	read_uses(w);
	return no_memory ? diag_set(diag, -ENOMEM, "cannot read the stacks: %m") : 0;
}

static int watch(struct watching *w, struct diag *diag)
{
	uint64_t begin_ns = clock_monotonic_ns();
	int result = 0;

	read_uses(w);
	for (uint32_t i = 1; i <= LOOKS && result == 0 && !w->ended; i++) {
		wait_until(w, begin_ns + w->live->duration_ns * i / (LOOKS + 1));
		if (!w->ended)
			result = look(w, diag);
	}
	wait_until(w, begin_ns + w->live->duration_ns);
	read_uses(w);
	while (!w->ended) {
		if (poll_one(w->watched.fd, POLLIN, -1))
			take_signals(w);
	}
	return result;
}

static int open_watching(struct watching *w, struct diag *diag)
{
	int result = interrupt_start(INTERRUPT_CHILD, &w->watched, diag);

	if (result == 0)
		result = proc_open(&w->proc, diag);
	if (result == 0)
		result = guard_start(&w->guard, diag);
	const struct thread_stacks_options options = {
		.guard = w->guard, .timeout_ns = LOOK_TIMEOUT_NS, .watched = &w->watched
	};
	if (result == 0)
		result = thread_stacks_new(&options, &w->stacks, diag);
	w->dumps = calloc(w->live->targets.list.count, sizeof(*w->dumps));
	for (uint32_t i = 0; i < w->live->targets.list.count && result == 0; i++)
		if (!w->dumps || !vec_push(&w->live->processes))
			result = diag_set(diag, -ENOMEM, "cannot diagnose: %m");
	return result;
}

static void close_watching(struct watching *w)
{
	if (w->recorder > 0 && !w->ended) {
		kill(w->recorder, SIGTERM);
		reap_recorder(w, 0);
	}
	thread_stacks_free(w->stacks);
	guard_free(w->guard);
	proc_close(&w->proc);
	free(w->dumps);
	interrupt_end(&w->watched);
}

static int choose(struct diagnose_live *live, struct diag *diag)
{
	char stem[64];
	struct record_outputs outputs = { 0 };
	int result = targets_choose(live->query, &live->targets, diag);

	if (result < 0)
		return result;
	if (live->targets.list.count > PROCESSES_MAX) {
		diag_set(diag, -EINVAL,
			"%u processes were chosen; at most %u are diagnosed together",
			live->targets.list.count, PROCESSES_MAX);
		diag_remedy(diag, "record them, and diagnose the recording: spoor record -a");
		return -EINVAL;
	}
	target_file_stem(live->targets.list.items[0].name, stem, sizeof(stem));
	const struct record_outputs_wish wish = { .files = live->outputs, .name = stem };
	result = record_outputs_choose(&outputs, &wish, diag);
	memcpy(live->path, outputs.path, sizeof(live->path));
	record_outputs_done(&outputs);
	return result;
}

static void say_begin(const struct diagnose_live *live)
{
	struct bytes line = { 0 };

	bytes_text(&line, "recording  ");
	targets_add_subject(&live->targets, &line);
	bytes_text(&line, " for ");
	text_add_duration(&line, (double)live->duration_ns / 1e9);
	bytes_text(&line, " into ");
	text_add_safe_z(&line, live->path);
	fprintf(stderr, "%s\n", bytes_z(&line));
	bytes_done(&line);
}

int diagnose_live_run(struct diagnose_live *live, struct facts *facts)
{
	struct watching w = {
		.live = live, .facts = facts, .proc = { .fd = -1 }, .watched = { .fd = -1 }
	};
	struct diag diag = { 0 };
	int result = choose(live, &diag);

	if (result < 0)
		return words_fail(&diag);
	say_begin(live);
	/* first, as the recorder is a child without our descriptors and handlers */
	result = start_recorder(&w, &diag);
	if (result == 0)
		result = open_watching(&w, &diag);
	if (result == 0)
		result = watch(&w, &diag);
	close_watching(&w);
	if (result < 0)
		return words_fail(&diag);
	if (WIFEXITED(w.status))
		return WEXITSTATUS(w.status);
	words_say("the recorder was killed by signal %d", WTERMSIG(w.status));
	return EXIT_FAILED;
}

/* What the runtimes counted of themselves, which no other analysis reads. */
static int gather_gauges(const struct diagnose_live *live, struct facts *facts)
{
	struct trace trace;
	struct runtime_gauges gauges = { .trace = &trace };
	struct diag diag = { 0 };

	if (trace_init(&trace) < 0)
		return -ENOMEM;
	/* A damaged file has been reported by its first reader. */
	int error = saved_read(live->path, &trace, runtime_gauges_event, &gauges, &diag);
	for (uint32_t i = 0; i < gauges.processes.count && error != -ENOMEM; i++) {
		const struct process_gauges *process = &gauges.processes.items[i];
		struct process_facts *row =
			facts_find(facts, trace.processes.items[process->process].pid);
		if (row)
			process_growth_split(row, process);
	}
	runtime_gauges_done(&gauges);
	trace_done(&trace);
	return error == -ENOMEM ? error : 0;
}

int diagnose_live_add_idle(const struct diagnose_live *live, struct facts *facts,
	const struct report *report)
{
	for (uint32_t i = 0; i < live->processes.count; i++) {
		const struct target *target = &live->targets.list.items[i];
		if (facts_find(facts, target->pid))
			continue;
		struct process_facts *row = facts_process(facts, target->pid);
		if (!row)
			return -ENOMEM;
		row->name = strtab_add_z(&facts->texts, target->name);
		facts_set(row, FACT_span, (double)report->duration_ns / 1e9);
		facts_set(row, FACT_cpus, 0);
		facts_set(row, FACT_demand_cpus, 0);
		if (!report->cpu_count)
			continue;
		facts_set(row, FACT_cpu_count, (double)report->cpu_count);
		facts_set(row, FACT_cpu_share, 0);
	}
	return 0;
}

int diagnose_live_gather(const struct diagnose_live *live, struct facts *facts)
{
	int error = 0;

	for (uint32_t i = 0; i < live->processes.count && !error; i++) {
		const struct live_process *process = &live->processes.items[i];
		struct process_facts *row = facts_find(facts, live->targets.list.items[i].pid);
		if (!row)
			continue;
		process_growth_gather(row, process->uses, process->use_count);
		error = stack_looks_gather(facts, row, &process->looks);
	}
	return error || !live->processes.count ? error : gather_gauges(live, facts);
}

void diagnose_live_done(struct diagnose_live *live)
{
	for (uint32_t i = 0; i < live->processes.count; i++)
		stack_looks_done(&live->processes.items[i].looks);
	vec_done(&live->processes);
	targets_done(&live->targets);
}
