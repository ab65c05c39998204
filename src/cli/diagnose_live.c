/* See diagnose_live.h. */
#include "cli/diagnose_live.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/own_function.h"
#include "base/bytes.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/record_observed.h"
#include "cli/record_outputs.h"
#include "cli/run_control.h"
#include "cli/verbs.h"
#include "code/managed_wait.h"
#include "dotnet/guard.h"
#include "machine/process_use.h"
#include "recording/live_observations.h"
#include "stacks/lock_owners.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_stacks.h"
#include "stacks/thread_waits.h"
#include "trace/spoor_payload.h"

#define LOOKS           3u /* at the stacks, evenly over the duration */
#define LOOK_TIMEOUT_NS UINT64_C(2000000000)
#define PROCESSES_MAX   64u
#define COUNTERS        "System.Runtime:0x0:4:EventCounterIntervalSec=1"
/* Events with stacks take a process some 10 us each: less than 50 ms of its CPU time. */
#define ACTIVITIES     "4000"
#define WORKER_NAME    ".NET TP Worker"
#define WORKER_START   "System.Threading.PortableThreadPool.WorkerThread."
#define FINALIZER_NAME ".NET Finalizer"
/* A recorder waits at most 8 s for runtimes that do not answer, and then reads symbol files. */
#define RECORDER_END_NS UINT64_C(30000000000)
/* Then it gets a SIGTERM, and this time to write what it has. */
#define RECORDER_LAST_NS UINT64_C(5000000000)
/* A recorder takes no event until it has started: on a busy machine that takes seconds. */
#define SEND_TIMEOUT_S 10
/* Standard streams may be closed, and a recorder's are its own. */
#define DESCRIPTOR_LEAST 3

enum recorder_state {
	RECORDER_NONE,
	RECORDER_RUNNING,
	RECORDER_ENDING, /* it writes what it has, and takes no more events */
	RECORDER_ENDED,  /* it was reaped, with `status` */
	RECORDER_KILLED, /* likewise, after it hung */
};

struct watching {
	struct diagnose_live *live;
	struct proc_reader proc;
	struct guard *guard;
	struct thread_stacks *stacks;
	struct thread_dump *dumps;
	struct bytes payload;
	struct run_control control; /* its command is the recorder */
	struct poll_set set;
	int to_recorder; /* the socket of live_observation_send(); -1: closed */
	int of_recorder; /* its other end; -1: closed here */
	enum recorder_state state;
	uint64_t end_ns; /* when the recorder is expected to end; earlier after a signal */
};

/* ---- the recorder ---- */

/* The one place where the state changes. */
static void recorder_enter(struct watching *w, enum recorder_state state)
{
	enum { OVER = 1u << RECORDER_ENDED | 1u << RECORDER_KILLED };
	static const unsigned next[] = {
		[RECORDER_NONE] = 1u << RECORDER_RUNNING,
		[RECORDER_RUNNING] = 1u << RECORDER_ENDING | OVER,
		[RECORDER_ENDING] = OVER,
		[RECORDER_ENDED] = 0,
		[RECORDER_KILLED] = 0,
	};

	(void)next; /* without assertions */
	assert(next[w->state] & 1u << state);
	w->state = state;
}

static bool is_over(const struct watching *w)
{
	return w->state == RECORDER_ENDED || w->state == RECORDER_KILLED;
}

static int run_recorder(const struct diagnose_live *live, int observations_fd)
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
	int code = record_observed((int)(sizeof(words) / sizeof(words[0])) - 1, words,
		observations_fd);
	bytes_done(&pids);
	return code;
}

/* Moves a descriptor above those of the standard streams. -1: it could not be, and is closed. */
static int move_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_LEAST);

	close(fd);
	return moved;
}

static int open_socket(struct watching *w, struct diag *diag)
{
	const struct timeval timeout = { .tv_sec = SEND_TIMEOUT_S };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return diag_set(diag, -errno, "cannot make a socket: %m");
	w->to_recorder = move_up(ends[0]);
	w->of_recorder = move_up(ends[1]);
	if (w->to_recorder < 0 || w->of_recorder < 0)
		return diag_set(diag, -EMFILE, "cannot move a socket: %m");
	/* A recorder that hangs must not hang its observer. */
	if (setsockopt(w->to_recorder, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
		return diag_set(diag, -errno, "cannot set up a socket: %m");
	return 0;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int start_recorder(struct watching *w, struct diag *diag)
{
	int result = open_socket(w, diag);

	if (result < 0)
		return result;
	fflush(stdout);
	pid_t pid = fork();

	if (pid < 0)
		return diag_set(diag, -errno, "cannot start the recorder: %m");
	if (pid == 0) {
		close_end(&w->to_recorder);
		_exit(run_recorder(w->live, w->of_recorder));
	}
	w->control.command.pid = (uint32_t)pid;
	close_end(&w->of_recorder);
	recorder_enter(w, RECORDER_RUNNING);
	return 0;
}

static void reap_recorder(struct watching *w)
{
	const struct run_command *recorder = &w->control.command;

	run_control_reap(&w->control);
	if (!is_over(w) && (recorder->ended || !recorder->pid))
		recorder_enter(w, RECORDER_ENDED);
}

/* Signals of the keyboard have reached the recorder too; others are passed on. */
static void take_signals(struct watching *w)
{
	if (!(run_control_take(&w->control) & RUN_REQUEST_END) || is_over(w))
		return;
	uint64_t end_ns = clock_monotonic_ns() + RECORDER_END_NS;

	if (end_ns < w->end_ns)
		w->end_ns = end_ns;
	run_control_pass_signal(&w->control);
}

/* Until this time, a signal, or word of the recorder. */
static void wait_a_turn(struct watching *w, uint64_t time_ns)
{
	poll_set_begin(&w->set, time_ns);
	(void)poll_set_add(&w->set, w->control.watched[0].fd, POLLIN);
	uint32_t recorder =
		poll_set_add(&w->set, w->state == RECORDER_RUNNING ? w->to_recorder : -1, POLLIN);
	/* it may have ended before its signal was watched */
	poll_set_wake(&w->set, clock_monotonic_ns() + RUN_REAP_NS);
	(void)poll_set_wait(&w->set); /* the loops read the clock */
	/* It sends nothing, and closes its direction when it ends. */
	if (poll_set_revents(&w->set, recorder))
		recorder_enter(w, RECORDER_ENDING);
	take_signals(w);
	reap_recorder(w);
}

/* While there is something to observe. */
static void observe_until(struct watching *w, uint64_t time_ns)
{
	while (w->state == RECORDER_RUNNING && clock_monotonic_ns() < time_ns)
		wait_a_turn(w, time_ns);
}

static void wait_for_end(struct watching *w, uint64_t time_ns)
{
	while (!is_over(w) && clock_monotonic_ns() < time_ns)
		wait_a_turn(w, time_ns);
}

/* Waits once until it should have ended, then kills it. */
static void wait_for_recorder(struct watching *w)
{
	/* a signal brings the time forward */
	while (!is_over(w) && clock_monotonic_ns() < w->end_ns)
		wait_a_turn(w, w->end_ns);
	if (is_over(w))
		return;
	run_command_signal(&w->control.command, SIGTERM);
	wait_for_end(w, clock_monotonic_ns() + RECORDER_LAST_NS);
	if (is_over(w))
		return;
	recorder_enter(w, RECORDER_KILLED);
	run_command_signal(&w->control.command, SIGKILL);
	while (w->control.command.pid && !w->control.command.ended) {
		(void)poll_one(-1, 0, POLL_SET_RETRY_MS);
		run_control_reap(&w->control);
	}
}

/* ---- the observations ---- */

/* An event of the recording, with the payload in w->payload. After a failure nothing more is sent. */
static void send_event(struct watching *w, enum known_event known, uint32_t pid)
{
	if (w->to_recorder >= 0 &&
		live_observation_send(w->to_recorder, known, pid, &w->payload) < 0)
		close_end(&w->to_recorder); /* the recorder has ended, or hangs */
	bytes_reset(&w->payload);
}

static const char *shown_name(const struct thread_dump *dump, const struct dump_frame *frame)
{
	return strtab_get(&dump->texts, frame->short_name ? frame->short_name : frame->name);
}

static bool is_own(const struct thread_dump *dump, const struct dump_frame *frame)
{
	return dump_frame_is_managed(frame) && own_method(strtab_get(&dump->texts, frame->name),
						       strtab_get(&dump->texts, frame->module));
}

/* The leaf's frames; the first one of the user's own is among them if there is one. */
static void send_stack(struct watching *w, const struct thread_dump *dump, uint64_t look,
	uint32_t stack)
{
	const char *names[PAYLOAD_LOOK_FRAMES_MAX];
	struct payload_look_stack payload = { .look = look, .stack = stack, .frames = names };
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, stack, &count);

	for (uint32_t i = 0; i < count; i++) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		bool own = !payload.own && is_own(dump, frame);
		if (payload.frame_count == PAYLOAD_LOOK_FRAMES_MAX && own)
			payload.frame_count--;
		if (payload.frame_count == PAYLOAD_LOOK_FRAMES_MAX)
			continue;
		names[payload.frame_count++] = shown_name(dump, frame);
		if (own)
			payload.own = payload.frame_count;
	}
	(void)payload_look_stack(&w->payload, &payload); /* a name may be cut */
	send_event(w, SPOOR_LOOK_STACK, dump->pid);
}

/* The framework's method that the program's own called, if it waits for a file or socket; else "". */
static const char *find_io(const struct thread_dump *dump, const struct dump_thread *thread)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, thread->stack, &count);
	const struct dump_frame *called = NULL;
	bool is_io = false;

	if (thread->state == 'R' || thread->mode != THREAD_NATIVE || thread->moved)
		return "";
	for (uint32_t i = 0; i < count; i++) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		const char *name = strtab_get(&dump->texts, frame->name);
		if (!dump_frame_is_managed(frame))
			continue;
		if (managed_wait_is_runner(name) || is_own(dump, frame))
			break;
		is_io |= managed_wait_is_io(name);
		called = frame;
	}
	return is_io ? shown_name(dump, called) : "";
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

static void send_thread(struct watching *w, const struct thread_dump *dump,
	const struct dump_thread *thread, uint64_t look)
{
	const char *name = strtab_get(&dump->texts, thread->name);
	const char *waits = strtab_get(&dump->texts, thread->waits_for);
	bool at_task = strcmp(waits, "for a task") == 0;
	bool finalizes = strcmp(name, FINALIZER_NAME) == 0 && thread->managed_count;
	const struct payload_look_thread payload = { .look = look,
		.tid = thread->tid,
		.stack = thread->stack,
		.flags = (is_worker(dump, thread) ? LOOK_THREAD_WORKER : 0u) |
			 (finalizes ? LOOK_THREAD_FINALIZER : 0u) |
			 (thread->idle ? LOOK_THREAD_IDLE : 0u) |
			 (thread->waits_for_lock ? LOOK_THREAD_AT_LOCK : 0u) |
			 (at_task ? LOOK_THREAD_AT_TASK : 0u),
		.waits_for = waits,
		.lock_owner = thread->lock_owner,
		.cpu_ns = thread->cpu_ns,
		.io = at_task ? "" : find_io(dump, thread) };

	(void)payload_look_thread(&w->payload, &payload); /* a name may be cut */
	send_event(w, SPOOR_LOOK_THREAD, dump->pid);
}

static void send_dump(struct watching *w, const struct thread_dump *dump, uint64_t look)
{
	struct map sent = { 0 }; /* stacks */

	payload_stack_look(&w->payload,
		&(struct payload_stack_look){ .time_ns = clock_monotonic_ns(),
			.look = look,
			.threads = dump->threads.count });
	send_event(w, SPOOR_STACK_LOOK, dump->pid);
	for (uint32_t i = 0; i < dump->threads.count; i++) {
		const struct dump_thread *thread = &dump->threads.items[i];
		if (thread->serves_session)
			continue;
		if (thread->stack && !map_get(&sent, thread->stack)) {
			/* without memory for this note the stack is sent again */
			(void)map_put(&sent, thread->stack, 1);
			send_stack(w, dump, look, thread->stack);
		}
		send_thread(w, dump, thread, look);
	}
	map_done(&sent);
}

static void send_uses(struct watching *w)
{
	for (uint32_t i = 0; i < w->live->targets.list.count; i++) {
		uint32_t pid = w->live->targets.list.items[i].pid;
		struct process_use use;
		if (process_use_read(&w->proc, pid, &use) < 0)
			continue; /* it has ended */
		payload_process_use(&w->payload,
			&(struct payload_process_use){ .time_ns = use.time_ns,
				.known = (use.has_wait ? PROCESS_USE_TIMES : 0u) |
					 (use.private_bytes ? PROCESS_USE_MEMORY : 0u) |
					 (use.has_descriptors ? PROCESS_USE_DESCRIPTORS : 0u) |
					 (use.has_writes ? PROCESS_USE_WRITES : 0u),
				.cpu_ns = use.cpu_ns,
				.wait_ns = use.wait_ns,
				.private_bytes = use.private_bytes,
				.descriptors = use.descriptors,
				.write_calls = use.write_calls,
				.written_bytes = use.written_bytes });
		send_event(w, SPOOR_PROCESS_USE, pid);
	}
}

/* A process that gives no stacks keeps its other facts. */
static int look(struct watching *w, uint64_t number, struct diag *diag)
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
			if (!no_memory)
				send_dump(w, dump, number);
		}
		thread_dump_done(dump);
	}
	take_signals(w);
	run_control_reap(&w->control);
	send_uses(w);
	return no_memory ? diag_set(diag, -ENOMEM, "cannot read the stacks: %m") : 0;
}

static int watch(struct watching *w, struct diag *diag)
{
	uint64_t begin_ns = clock_monotonic_ns();
	uint64_t duration_ns = w->live->duration_ns;
	int result = 0;

	if (duration_ns > UINT64_MAX - begin_ns - RECORDER_END_NS)
		duration_ns = UINT64_MAX - begin_ns - RECORDER_END_NS;
	w->end_ns = begin_ns + duration_ns + RECORDER_END_NS;
	send_uses(w);
	for (uint32_t i = 1; i <= LOOKS && result == 0 && w->state == RECORDER_RUNNING; i++) {
		observe_until(w, begin_ns + duration_ns / (LOOKS + 1) * i);
		if (w->state == RECORDER_RUNNING)
			result = look(w, i, diag);
	}
	observe_until(w, begin_ns + duration_ns);
	send_uses(w);
	close_end(&w->to_recorder); /* the recorder waits for no other look */
	wait_for_recorder(w);
	return result;
}

static int open_watching(struct watching *w, struct diag *diag)
{
	int result = run_control_start(&w->control, INTERRUPT_CHILD, false, diag);

	if (result == 0)
		result = proc_open(&w->proc, diag);
	if (result == 0)
		result = guard_start(&w->guard, diag);
	const struct thread_stacks_options options = {
		.guard = w->guard,
		.timeout_ns = LOOK_TIMEOUT_NS,
		.watched = &w->control.watched[0],
		.keeps_names = true,
	};
	if (result == 0)
		result = thread_stacks_new(&options, &w->stacks, diag);
	w->dumps = calloc(w->live->targets.list.count, sizeof(*w->dumps));
	if (result == 0 && !w->dumps)
		result = diag_set(diag, -ENOMEM, "cannot diagnose: %m");
	return result;
}

static void close_watching(struct watching *w)
{
	close_end(&w->to_recorder);
	close_end(&w->of_recorder);
	if (w->state == RECORDER_RUNNING || w->state == RECORDER_ENDING) {
		run_command_signal(&w->control.command, SIGTERM);
		w->end_ns = clock_monotonic_ns() + RECORDER_END_NS;
		wait_for_recorder(w);
	}
	thread_stacks_free(w->stacks);
	guard_free(w->guard);
	proc_close(&w->proc);
	free(w->dumps);
	bytes_done(&w->payload);
	poll_set_done(&w->set);
	run_control_end(&w->control);
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

int diagnose_live_run(struct diagnose_live *live)
{
	struct watching w = { .live = live,
		.proc = { .fd = -1 },
		.control = { .watched = { { .fd = -1 } } },
		.to_recorder = -1,
		.of_recorder = -1 };
	struct diag diag = { 0 };
	int result = choose(live, &diag);

	if (result < 0)
		return message_fail(&diag);
	say_begin(live);
	/* first, as the recorder is a child without our descriptors and handlers */
	result = start_recorder(&w, &diag);
	if (result == 0)
		result = open_watching(&w, &diag);
	if (result == 0)
		result = watch(&w, &diag);
	close_watching(&w);
	if (result < 0)
		return message_fail(&diag);
	int status = w.control.command.status;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (w.state == RECORDER_KILLED)
		message_print("the recorder did not end and was killed; what it wrote is in %s",
			live->path);
	else
		message_print("the recorder was killed by signal %d", WTERMSIG(status));
	return EXIT_FAILED;
}

void diagnose_live_done(struct diagnose_live *live)
{
	targets_done(&live->targets);
}
