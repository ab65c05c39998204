/* See thread_stacks.h. */
#include "stacks/thread_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "code/arch.h"
#include "code/frame_chain.h"
#include "dotnet/guard.h"
#include "dotnet/reason.h"
#include "machine/box.h"
#include "machine/proc.h"
#include "machine/rights.h"
#include "machine/target_root.h"
#include "stacks/frame_evidence.h"
#include "stacks/frame_names.h"
#include "stacks/kept_names.h"
#include "stacks/seen_threads.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_stacks_state.h"
#include "symbolize/name_tables.h"
#include "target/targets.h"
#include "trace/clr.h"
#include "trace/trace.h"

#define KEYWORD_CONTENTION UINT64_C(0x4000)
#define RUNDOWN_KEYWORDS   (CLR_KEYWORD_LOADER | CLR_KEYWORD_JIT)
#define BUFFER_MB          64u
#define TIMEOUT_NS         UINT64_C(5000000000)
#define TURN_NS            UINT64_C(250000000)
#define INTERRUPTED_NS     UINT64_C(1000000000) /* for sessions to end after an interruption */
#define FRAMES_ROOM        512u
#define STACK_BYTES_MAX    (256u << 10) /* of a thread's stack that are read */
#define CALL_BYTES         8u           /* before an address: room for a call */
/* the sampler ticks each millisecond: ten chances of a sample after /proc was read */
#define SETTLE_NS UINT64_C(10000000)

struct thread_stacks {
	struct thread_stacks_options options;
	struct proc_reader proc;
	struct frame_naming naming;
	struct kept_names_list kept;
};

/* ---- /proc ---- */

static int take_mapping(void *user, const struct proc_mapping *mapping)
{
	struct stacks_taking *t = user;
	struct stack_code_mapping *own = vec_push(&t->mappings);

	if (!own)
		return -ENOMEM;
	*own = (struct stack_code_mapping){
		.begin = mapping->begin,
		.end = mapping->end,
		.file_offset = mapping->file_offset,
		.inode = mapping->inode,
		.device = (uint64_t)mapping->device_major << 32 | mapping->device_minor,
		.path = strtab_add(&t->dump->texts, mapping->path, mapping->path_len),
	};
	return 0;
}

/* ---- frames in a stack ---- */

static bool is_return(void *context, uint64_t address, uint64_t *ret_target)
{
	const struct stacks_taking *t = context;
	const struct stack_code_mapping *mapping = code_mapping_of(t, address);
	uint8_t code[CALL_BYTES];
	int64_t offset;

	*ret_target = 0;
	if (!mapping || address - mapping->begin < CALL_BYTES ||
		target_memory_read(t->memory_fd, address - CALL_BYTES, code, CALL_BYTES) !=
			CALL_BYTES ||
		!arch_ends_with_call(arch_here(), code, CALL_BYTES, &offset))
		return false;
	if (offset)
		*ret_target = address + (uint64_t)offset;
	return true;
}

static bool is_start(void *context, uint64_t address)
{
	const struct stacks_taking *t = context;
	const struct stack_code_mapping *mapping = code_mapping_of(t, address);
	const char *name = mapping ? code_mapping_name(t, mapping) : "";

	return strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0 ||
	       strncmp(name, "libpthread", 10) == 0 || strncmp(name, "ld-musl", 7) == 0;
}

/*
 * The stack is valid if the thread was in the same system call before and after it was read: then
 * the thread did not run in between.
 */
static void walk(struct stacks_taking *t, const struct proc_thread_state *state,
	struct walked *walked)
{
	const struct seen *seen = seen_now(t, state->thread.inner_tid);
	uint32_t managed_count = 0;
	const uint64_t *managed = NULL;

	walked->first = t->walked_frames.count;
	if (seen && seen->before.mode && !seen->before.over) {
		walked->moment = seen->before;
		managed = stack_table_get(&t->session.trace.stacks, seen->before.stack,
			&managed_count);
	}
	/* The stack pointer is known of a thread that waits only. */
	if (t->memory_fd < 0 || !t->stack || !state->sp || state->sp % 8)
		return;
	ssize_t size = target_memory_read(t->memory_fd, state->sp, t->stack, STACK_BYTES_MAX);

	if (size < 16 || !thread_state_stands(&t->stacks->proc, t->target->pid, state) ||
		!vec_reserve(&t->walked_frames, FRAMES_ROOM))
		return;
	const struct frame_chain chain = {
		.words = t->stack,
		.count = (size_t)size / 8,
		.sp = state->sp,
		.is_return = is_return,
		.is_start = is_start,
		.context = t,
	};

	walked->count = frame_chain_find(&chain, managed, managed_count,
		t->walked_frames.items + walked->first, FRAMES_ROOM, &walked->skipped);
	t->walked_frames.count += walked->count;
}

static void walk_all(struct stacks_taking *t)
{
	if (target_memory_open(t->target->pid, &t->memory_fd) < 0) {
		t->memory_fd = -1;
		return;
	}
	t->stack = malloc(STACK_BYTES_MAX); /* without: no native frames */
	for (uint32_t i = 0; i < t->states.count; i++) {
		struct walked *walked = vec_push(&t->walks);
		if (!walked)
			break;
		walk(t, &t->states.items[i], walked);
	}
	free(t->stack);
	t->stack = NULL;
	(void)close(t->memory_fd); /* nothing to be done about it: it was only read */
	t->memory_fd = -1;
}

static uint64_t first_switches(const struct stacks_taking *t, uint32_t tid)
{
	uint32_t at = map_get(&t->first_index, tid);

	return at ? t->first.items[at - 1].switches : 0;
}

/* Read before the session opens: a thread that did not run until then waited at one place. */
static void read_first_switches(struct stacks_taking *t)
{
	struct id_list tids = { 0 };

	/* the process has exited: then the list is empty */
	(void)proc_list_threads(&t->stacks->proc, t->target->pid, &tids);
	for (uint32_t i = 0; i < tids.ids.count && i < THREADS_MAX; i++) {
		struct first_steps *first = vec_push(&t->first);
		if (!first || !map_put(&t->first_index, tids.ids.items[i], t->first.count))
			break;
		first->tid = tids.ids.items[i];
		first->switches =
			thread_state_switches(&t->stacks->proc, t->target->pid, first->tid);
	}
	vec_done(&tids.ids);
}

/* What the thread was doing before /proc was read, it did then. */
static bool stood_before(const struct proc_thread_state *state, const struct steps *steps)
{
	return state->switches && steps->first == state->switches;
}

/* What the thread was doing when /proc was read, it still did at the sample after that. */
static bool stood_after(const struct stacks_taking *t, const struct proc_thread_state *state,
	const struct steps *steps, const struct seen *seen)
{
	return !t->own_clock && state->switches && steps->last == state->switches &&
	       seen->after.time_ns >= steps->looked_ns && seen->after.time_ns <= steps->last_ns;
}

static struct frame_evidence evidence_of(const struct stacks_taking *t, uint32_t number)
{
	const struct proc_thread_state *state = &t->states.items[number];
	const struct steps *steps = &t->steps.items[number];
	const struct seen *seen = seen_now(t, state->thread.inner_tid);
	const struct walked *walked = number < t->walks.count && t->walks.items[number].count
					      ? &t->walks.items[number]
					      : NULL;

	return (struct frame_evidence){
		.runs = thread_state_runs(state),
		.stood_before = stood_before(state, steps),
		.sampled_before = seen && seen->before.mode && !seen->before.over,
		.after = !seen || !seen->after.mode           ? LATER_SAMPLE_NONE
			 : stood_after(t, state, steps, seen) ? LATER_SAMPLE_PROVED
							      : LATER_SAMPLE_SEEN,
		.walk = !walked               ? STACK_WALK_NONE
			: walked->moment.mode ? STACK_WALK_MANAGED
					      : STACK_WALK_NATIVE,
		.skipped = walked ? walked->skipped : 0,
	};
}

/* Whether another sample could prove that a thread had its frames when /proc was read. */
static bool needs_settling(const struct stacks_taking *t)
{
	for (uint32_t i = 0; i < t->states.count && i < t->steps.count; i++) {
		const struct frame_evidence evidence = evidence_of(t, i);
		if (seen_now(t, t->states.items[i].thread.inner_tid) &&
			frame_evidence_needs_more(&evidence))
			return true;
	}
	return false;
}

static void settle(struct stacks_taking *t)
{
	t->settled = true;
	for (uint32_t i = 0; i < t->states.count && i < t->steps.count; i++) {
		t->steps.items[i].last_ns = clock_monotonic_ns();
		t->steps.items[i].last = thread_state_switches(&t->stacks->proc, t->target->pid,
			t->states.items[i].thread.tid);
	}
}

/*
 * Reads every thread of the process. One that has ended meanwhile is left out; that is no failure.
 */
static void look(struct stacks_taking *t)
{
	struct thread_stacks *stacks = t->stacks;
	struct id_list tids = { 0 };
	uint64_t sync_ns = t->session.trace.recording.sync_ns;

	t->looked = true;
	t->own_clock = sync_ns < t->begin_ns || sync_ns > clock_monotonic_ns();
	t->looked_tick = t->tick;
	t->dump->native = true;
	/* the process has exited: then the list is empty */
	(void)proc_list_threads(&stacks->proc, t->target->pid, &tids);
	for (uint32_t i = 0; i < tids.ids.count && i < THREADS_MAX; i++) {
		struct proc_thread_state *state = vec_push(&t->states);
		struct steps *steps = vec_push(&t->steps);
		uint64_t looked_ns = clock_monotonic_ns();
		if (!state || !steps) {
			t->states.count -= state != NULL;
			break;
		}
		if (thread_state_read(&stacks->proc, t->target->pid, tids.ids.items[i], state) <
			0) {
			t->states.count--;
			t->steps.count--;
			continue;
		}
		struct seen *seen = seen_of(t, state->thread.inner_tid);
		if (seen)
			seen->looked_ns = looked_ns;
		*steps = (struct steps){ .first = first_switches(t, state->thread.tid),
			.looked_ns = clock_monotonic_ns() };
		if (state->denied)
			t->dump->native = false;
	}
	vec_done(&tids.ids);
	/* without: addresses only */
	(void)proc_read_maps(&stacks->proc, t->target->pid, take_mapping, t);
	if (!stacks->options.managed_only)
		walk_all(t);
	t->settle_ns = needs_settling(t) ? clock_monotonic_ns() + SETTLE_NS : 0;
}

/* ---- the result ---- */

struct stack_building {
	uint64_t frames[FRAMES_ROOM];
	uint32_t count;
};

static void add_frame(struct stack_building *building, uint32_t frame)
{
	if (frame && building->count < FRAMES_ROOM)
		building->frames[building->count++] = frame;
}

/*
 * A method that was replaced while it ran (on-stack replacement) leaves its first body's record
 * below the new one's. The runtime counts the two as one frame, and a recursive call as two.
 */
static bool is_replaced(const struct stack_building *building, uint32_t frame, uint64_t address,
	const uint64_t *managed, uint32_t managed_count)
{
	for (uint32_t i = 0; i < managed_count; i++) {
		if (managed[i] == address)
			return false;
	}
	return managed_count && building->count && building->frames[building->count - 1] == frame;
}

static void add_kernel(struct stacks_taking *t, const struct proc_thread_state *state,
	struct stack_building *building)
{
	for (const char *at = state->kernel; *at;) {
		size_t len = strcspn(at, "\n");
		add_frame(building, frame_kernel(t, at, len));
		at += len + (at[len] != '\0');
	}
	if (!building->count && *state->function)
		add_frame(building, frame_kernel(t, state->function, strlen(state->function)));
}

static void add_gap(struct stacks_taking *t, struct stack_building *building)
{
	const struct dump_frame gap = { .name = frame_text(t, "[native frames]"), .gap = true };

	add_frame(building, thread_dump_frame(t->dump, &gap));
}

/* One address of a sample, or of a walk. */
static uint32_t frame_at(struct stacks_taking *t, uint64_t address, bool leaf, uint64_t time_ns)
{
	/* All but a running leaf are return addresses: the call is before it. */
	uint32_t frame = leaf ? frame_managed(t, address, time_ns) : 0;

	if (!frame)
		frame = frame_managed(t, address - 1, time_ns);
	return frame ? frame : frame_native(t, address - 1);
}

/* The managed frames to show for a thread; NULL: none. See frame_evidence_choose(). */
static const struct moment *choose_moment(const struct stacks_taking *t, uint32_t number,
	bool *ret_moved)
{
	const struct seen *seen = seen_now(t, t->states.items[number].thread.inner_tid);
	const struct frame_evidence evidence = evidence_of(t, number);

	switch (frame_evidence_choose(&evidence, ret_moved)) {
	case FRAMES_WALKED:
		return &t->walks.items[number].moment;
	case FRAMES_BEFORE:
		return &seen->before;
	case FRAMES_AFTER:
		return &seen->after;
	case FRAMES_NONE:
		break;
	}
	return NULL;
}

static void build_thread(struct stacks_taking *t, uint32_t number)
{
	const struct proc_thread_state *state = &t->states.items[number];
	struct walked walked =
		number < t->walks.count ? t->walks.items[number] : (struct walked){ 0 };
	bool moved;
	const struct moment *moment = choose_moment(t, number, &moved);
	const struct seen *seen = seen_now(t, state->thread.inner_tid);
	struct stack_building building = { .count = 0 };
	uint32_t managed_count = 0;
	const uint64_t *managed =
		moment ? stack_table_get(&t->session.trace.stacks, moment->stack, &managed_count)
		       : NULL;
	uint64_t time_ns = moment ? moment->time_ns : 0;
	struct dump_thread *thread = vec_push(&t->dump->threads);

	if (!thread)
		return;
	thread->tid = state->thread.tid;
	thread->inner_tid = state->thread.inner_tid;
	thread->state = state->state;
	thread->cpu_ns = state->cpu_ns;
	thread->name = frame_text(t, state->thread.comm);
	thread->syscall = frame_text(t, state->name);
	thread->function = frame_text(t, state->function);
	thread->object = frame_text(t, state->object);
	thread->managed_count = managed_count;
	thread->moved = moved;
	if (moment && (number >= t->walks.count || moment != &t->walks.items[number].moment))
		/* native frames found without these managed ones */
		walked.count = walked.skipped = 0;
	if (moment)
		thread->mode = moment->mode;
	if (seen && !moved)
		thread->lock = seen->before.lock;
	/* The thread was sampled before or after it began this wait: the two are not one stack. */
	if (!t->stacks->options.managed_only && !moved &&
		(thread->mode != THREAD_MANAGED || walked.count)) {
		add_kernel(t, state, &building);
		if (state->pc)
			add_frame(&building, frame_native(t, state->pc));
	}
	/* Where the walk did not get beyond managed code, native frames are missing before it. */
	bool gap = !walked.count || walked.skipped ||
		   t->walked_frames.items[walked.first] - (managed_count ? managed[0] : 0) <
			   FRAME_CHAIN_LEAF_REACH;

	if (gap && thread->mode != THREAD_MANAGED && (building.count || managed_count))
		add_gap(t, &building);
	for (uint32_t i = 0; i < managed_count && (!walked.count || i < walked.skipped); i++)
		add_frame(&building, frame_at(t, managed[i], !i, time_ns));
	for (uint32_t i = 0; i < walked.count; i++) {
		uint64_t address = t->walked_frames.items[walked.first + i];
		uint32_t frame = frame_at(t, address, false, time_ns);
		if (!is_replaced(&building, frame, address, managed, managed_count))
			add_frame(&building, frame);
	}
	thread->stack = stack_table_intern(&t->dump->stacks, building.frames, building.count);
}

static void name_owners(struct stacks_taking *t)
{
	vec_each(thread, &t->dump->threads) {
		const struct seen *seen = seen_now(t, thread->inner_tid);
		const struct dump_thread *owner = NULL;
		if (thread->lock && seen && seen->before.lock == thread->lock &&
			seen->before.lock_owner)
			owner = thread_dump_find(t->dump, seen->before.lock_owner);
		if (owner)
			thread->lock_owner = owner->tid;
	}
}

static bool is_refused(const struct stacks_taking *t)
{
	return eventpipe_reason(t->session.pipe)->kind == REASON_KIND_PERMISSION;
}

static bool has_whole_rundown(const struct stacks_taking *t)
{
	const struct eventpipe *pipe = t->has_kept_names ? t->rundown.pipe : t->session.pipe;

	return pipe && eventpipe_whole(pipe);
}

static void finish(struct stacks_taking *t)
{
	const char *reason = "";
	char version[64];

	if (!t->looked)
		look(t);
	if (t->settle_ns && !t->settled)
		settle(t);
	if (event_session_version(&t->session, version, sizeof(version)))
		t->dump->runtime_version = frame_text(t, version);
	if (t->session.pipe) {
		reason = eventpipe_reason(t->session.pipe)->text;
		t->dump->refused = is_refused(t);
	}
	codemap_settle(&t->codemap);
	/* a rundown that was cut has fewer names than there are */
	if (t->stacks->options.keeps_names && has_whole_rundown(t))
		kept_names_note_nameless(t);
	for (uint32_t i = 0; i < t->states.count; i++)
		build_thread(t, i);
	name_owners(t);
	if (!t->states.count)
		reason = "it has ended";
	else if (t->session.broken.error)
		reason = t->session.broken.text;
	else if (!*reason && !t->sampled)
		reason = "its runtime sends no samples (NativeAOT, or it is stopped)";
	if (!t->sampled || !t->states.count)
		t->dump->unsampled_reason = frame_text(t, reason);
	t->dump->lost_events = event_session_lost(&t->session);
	t->dump->took_ns = clock_monotonic_ns() - t->begin_ns;
}

/* ---- names of methods ---- */

/* Of a session that has nothing but the rundown; its threads are not those of the first one. */
static void take_name(void *user, const struct schema *schema, const struct event *event,
	struct diag *broken)
{
	struct stacks_taking *t = user;

	(void)broken;
	/* A body that cannot be taken costs its own name only. */
	if (schema->provider_kind == PROVIDER_CLR_RUNDOWN)
		(void)clr_absorb_method(&t->codemap, 1, schema->event_id, schema->version,
			event->time_ns, event->payload, event->payload_size);
}

/* The first session is over, and was without a rundown: one that is nothing else, if it is needed. */
static void ask_names(struct stacks_taking *t)
{
	static const struct ipc_provider quiet = { .name = PROVIDER_EVENTPIPE_NAME, .level = 1 };
	const struct eventpipe_options options = {
		.providers = &quiet,
		.provider_count = 1,
		.buffer_mb = BUFFER_MB,
		.rundown_keywords = RUNDOWN_KEYWORDS,
		.no_stacks = true,
		.no_info = true,
		.stop_at_once = true,
	};
	const struct event_reading reading = {
		.take = take_name, .user = t, .name = "the methods' names"
	};

	if (!t->has_kept_names || t->asked_names || !event_session_is_over(&t->session) ||
		!kept_names_are_short(t))
		return;
	t->asked_names = true;
	/* without memory these methods have no names */
	(void)event_session_open(&t->rundown, &t->client, &options, &reading);
}

/* Payloads name the locks that are waited for: not if only borrowed rights reach the process. */
static int open_pipe(struct stacks_taking *t)
{
	t->providers[0] = (struct ipc_provider){ .name = PROVIDER_SAMPLE_NAME, .level = 4 };
	t->providers[1] = (struct ipc_provider){
		.name = PROVIDER_CLR_NAME, .keywords = KEYWORD_CONTENTION, .level = 4
	};
	const struct eventpipe_options options = {
		.providers = t->providers,
		.provider_count = t->port.borrows ? 1 : 2,
		.buffer_mb = BUFFER_MB,
		.rundown_keywords = t->has_kept_names ? 0 : RUNDOWN_KEYWORDS,
	};
	const struct event_reading reading = {
		.take = seen_take_event, .user = t, .name = "the threads' stacks"
	};

	return event_session_open(&t->session, &t->client, &options, &reading);
}

/*
 * The caller's own rights are not enough to connect; those of Spoor's file capabilities may be.
 * True when a second session was begun.
 */
static bool borrow(struct stacks_taking *t)
{
	if (t->port.borrows || !rights_are_borrowed() || !is_refused(t))
		return false;
	t->port.borrows = t->dump->values_withheld = true;
	return open_pipe(t) == 0; /* without memory it has no managed frames */
}

static int begin(struct stacks_taking *t)
{
	struct diag diag = { 0 };
	int result = thread_dump_init(t->dump);

	t->begin_ns = clock_monotonic_ns();
	t->dump->utc_ns = clock_utc_ns();
	t->dump->pid = t->target->pid;
	t->dump->name = frame_text(t, t->target->name);
	if (result < 0)
		return result;
	if (dotnet_target_read(t->target->pid, &t->port, &diag) < 0)
		return 0; /* shows in the dump, which then has no threads */
	kept_names_take(&t->stacks->kept, t);
	runtime_client_init(&t->client, NULL, &t->port, t->stacks->options.guard);
	read_first_switches(t);
	return open_pipe(t);
}

static bool is_rundown_over(const struct stacks_taking *t)
{
	return event_session_is_over(&t->rundown) ||
	       eventpipe_state(t->rundown.pipe) == EVENTPIPE_HUNG;
}

static bool is_over(const struct stacks_taking *t)
{
	return (event_session_is_over(&t->session) && is_rundown_over(t)) ||
	       (t->stopping && eventpipe_state(t->session.pipe) == EVENTPIPE_HUNG);
}

/* The next step for a process after its EventPipe session has been advanced. */
static void step(struct stacks_taking *t, bool interrupted, uint64_t now)
{
	uint64_t timeout_ns =
		t->stacks->options.timeout_ns ? t->stacks->options.timeout_ns : TIMEOUT_NS;

	if (t->stopping || (is_over(t) && !borrow(t)))
		return;
	if (t->sampled && !t->looked)
		look(t);
	if (t->settle_ns && !interrupted && clock_monotonic_ns() < t->settle_ns)
		return;
	if (t->settle_ns && !t->settled)
		settle(t);
	if (!t->sampled && !interrupted && now < t->begin_ns + timeout_ns &&
		eventpipe_state(t->session.pipe) != EVENTPIPE_HUNG)
		return;
	t->stopping = true;
	event_session_stop(&t->session, now);
}

/* One turn of all sessions. True while one of them is open. */
static bool turn(struct thread_stacks *stacks, struct stacks_taking *takings, size_t count,
	struct poll_set *set, bool *interrupted)
{
	struct pollfd *watched = *interrupted ? NULL : stacks->options.watched;
	bool open = false;

	poll_set_begin(set, clock_monotonic_ns() + TURN_NS);
	for (size_t i = 0; i < count; i++) {
		if (is_over(&takings[i]))
			continue;
		runtime_client_await(&takings[i].client, set);
		if (takings[i].settle_ns && !takings[i].settled)
			poll_set_wake(set, takings[i].settle_ns);
		open = true;
	}
	if (!open)
		return false;
	poll_set_add_callers(set, watched, watched ? 1 : 0);
	uint64_t now = poll_set_wait(set);

	if (watched && watched->revents)
		*interrupted = true;
	guard_beat(stacks->options.guard, now);
	for (size_t i = 0; i < count; i++) {
		if (is_over(&takings[i]))
			continue;
		runtime_client_advance(&takings[i].client, now);
		step(&takings[i], *interrupted, now);
		if (!*interrupted)
			ask_names(&takings[i]);
	}
	return true;
}

static void done(struct stacks_taking *t)
{
	event_session_close(&t->session);
	event_session_close(&t->rundown);
	runtime_client_done(&t->client);
	if (t->target && t->stacks->options.keeps_names)
		kept_names_keep(&t->stacks->kept, t);
	codemap_done(&t->codemap);
	map_done(&t->nameless);
	vec_done(&t->seen);
	map_done(&t->seen_index);
	vec_done(&t->first);
	map_done(&t->first_index);
	vec_done(&t->states);
	vec_done(&t->steps);
	vec_done(&t->walks);
	vec_done(&t->walked_frames);
	vec_done(&t->mappings);
	bytes_done(&t->text);
}

int thread_stacks_take(struct thread_stacks *stacks, const struct target *targets, size_t count,
	struct thread_dump *dumps, struct diag *diag)
{
	struct stacks_taking *takings = calloc(count + 1, sizeof(*takings));
	struct poll_set set = { 0 };
	bool interrupted = false;
	int result = takings ? 0 : -ENOMEM;

	memset(dumps, 0, count * sizeof(*dumps));
	for (size_t i = 0; result == 0 && i < count; i++) {
		takings[i].stacks = stacks;
		takings[i].naming = &stacks->naming;
		takings[i].target = &targets[i];
		takings[i].dump = &dumps[i];
		takings[i].memory_fd = -1;
		result = begin(&takings[i]);
	}
	uint64_t until_ns = UINT64_MAX;

	while (result == 0 && clock_monotonic_ns() < until_ns &&
		turn(stacks, takings, count, &set, &interrupted))
		if (interrupted && until_ns == UINT64_MAX)
			until_ns = clock_monotonic_ns() + INTERRUPTED_NS;
	for (size_t i = 0; takings && i < count; i++) {
		if (result == 0 && (!interrupted || (is_over(&takings[i]) && takings[i].sampled)))
			finish(&takings[i]);
		done(&takings[i]);
	}
	free(takings);
	poll_set_done(&set);
	if (result < 0)
		return diag_set(diag, result, "cannot take the threads' stacks: %m");
	return interrupted ? -EINTR : 0;
}

int thread_stacks_new(const struct thread_stacks_options *options,
	struct thread_stacks **ret_stacks, struct diag *diag)
{
	struct thread_stacks *stacks = calloc(1, sizeof(*stacks));
	struct box box;

	if (!stacks)
		return diag_set(diag, -ENOMEM, "cannot take stacks: %m");
	stacks->options = *options;
	stacks->proc.fd = -1;
	int result = proc_open(&stacks->proc, diag);

	box_read(&box);
	if (result == 0)
		stacks->naming.tables = name_tables_new(&box, NULL);
	if (result == 0 && !stacks->naming.tables)
		result = diag_set(diag, -ENOMEM, "cannot take stacks: %m");
	if (result < 0) {
		thread_stacks_free(stacks);
		return result;
	}
	*ret_stacks = stacks;
	return 0;
}

void thread_stacks_free(struct thread_stacks *stacks)
{
	if (!stacks)
		return;
	name_tables_free(stacks->naming.tables);
	kept_names_done(&stacks->kept);
	proc_close(&stacks->proc);
	map_done(&stacks->naming.image_index);
	free(stacks);
}
