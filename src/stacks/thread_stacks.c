/* See thread_stacks.h. */
#include "stacks/thread_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "code/arch.h"
#include "code/codemap.h"
#include "code/frame_chain.h"
#include "code/mapping_kind.h"
#include "code/method_name.h"
#include "dotnet/eventpipe.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "machine/box.h"
#include "machine/proc.h"
#include "machine/rights.h"
#include "machine/target_root.h"
#include "machine/thread_state.h"
#include "pipeline/event_session.h"
#include "stacks/frame_evidence.h"
#include "stacks/thread_dump.h"
#include "symbolize/name_tables.h"
#include "target/targets.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define KEYWORD_CONTENTION UINT64_C(0x4000)
#define BUFFER_MB          64u
#define TIMEOUT_NS         UINT64_C(5000000000)
#define TURN_NS            UINT64_C(250000000)
#define INTERRUPTED_NS     UINT64_C(1000000000) /* for sessions to end after an interruption */
/* that are looked at; of a process with more, the rest is left out */
#define THREADS_MAX 65536u
/* a tick of the sampler has every thread in managed code: one that is missing has left it */
#define TICKS_STALE     4u
#define FRAMES_ROOM     512u
#define STACK_BYTES_MAX (256u << 10) /* of a thread's stack that are read */
#define CALL_BYTES      8u           /* before an address: room for a call */
/* the sampler ticks each millisecond: ten chances of a sample after /proc was read */
#define SETTLE_NS UINT64_C(10000000)

struct thread_stacks {
	struct thread_stacks_options options;
	struct proc_reader proc;
	struct name_tables *tables;
	struct map image_index; /* hash of device and inode -> image number */
	uint32_t image_count;
};

/* A thread's managed frames at one moment. */
struct moment {
	uint64_t time_ns;
	uint64_t lock;
	uint64_t lock_owner; /* as the process numbers it */
	uint32_t stack;      /* in the stream's trace */
	uint8_t mode;        /* 0: nothing is known */
	/* the wait for the lock that it shows has ended: the next sample counts */
	bool over;
};

/* What the stream said of a thread. */
struct seen {
	uint64_t inner_tid;
	uint64_t looked_ns;   /* when /proc was read for it; 0: it was not yet */
	struct moment before; /* the last one before that */
	struct moment after;  /* the first one since */
	uint32_t tick;        /* of the sampler, when it was last seen */
};

/* Whether a thread ran while it was looked at: its context switches, beside its thread_state. */
struct steps {
	uint64_t first; /* before the session was opened; 0 not known */
	/* SETTLE_NS after /proc was read; 0 not known, or not read */
	uint64_t last;
	uint64_t last_ns;   /* just before `last` was read */
	uint64_t looked_ns; /* just after the thread's state was read */
};

struct code_mapping {
	uint64_t begin;
	uint64_t end;
	uint64_t file_offset;
	uint64_t inode;
	uint64_t device;
	uint32_t path; /* strtab of the dump */
};

/* Frames that were found in a thread's stack: return addresses. */
struct walked {
	uint32_t first;
	uint32_t count;
	uint32_t skipped;     /* managed frames nearer to the leaf than these */
	struct moment moment; /* of the managed frames that were found in the stack */
};

/* A thread's context switches before the session. */
struct first_steps {
	uint32_t tid;
	uint64_t switches;
};

struct taking {
	struct thread_stacks *stacks;
	const struct target *target;
	struct thread_dump *dump;
	struct dotnet_target port;
	struct ipc_provider providers[2];
	struct event_session session;
	struct codemap codemap;
	VEC(struct seen) seen;
	struct map seen_index; /* inner tid -> seen, plus one */
	VEC(struct first_steps) first;
	struct map first_index; /* tid -> first, plus one */
	VEC(struct thread_state) states;
	VEC(struct steps) steps;  /* parallel to states */
	VEC(struct walked) walks; /* parallel to states */
	VEC(uint64_t) walked_frames;
	VEC(struct code_mapping) mappings;
	struct bytes text; /* scratch */
	uint64_t *stack;   /* scratch: STACK_BYTES_MAX */
	/* of the sampler: a new one begins when a thread is sampled again */
	uint32_t tick;
	uint32_t looked_tick;
	int memory_fd; /* while it is looked at */
	bool sampled;
	bool looked;  /* at /proc */
	bool settled; /* the context switches were read again */
	/* its events have another clock than we: it is in a time namespace */
	bool own_clock;
	bool stopping;
	uint64_t begin_ns;
	uint64_t settle_ns; /* when they are to be */
};

/* ---- the stream ---- */

static struct seen *seen_of(struct taking *t, uint64_t inner_tid)
{
	uint32_t at = map_get(&t->seen_index, inner_tid);

	if (at)
		return &t->seen.items[at - 1];
	if (t->seen.count >= THREADS_MAX)
		return NULL;
	struct seen *seen = vec_push(&t->seen);
	if (!seen || !map_put(&t->seen_index, inner_tid, t->seen.count)) {
		t->seen.count -= seen != NULL;
		return NULL;
	}
	seen->inner_tid = inner_tid;
	return seen;
}

/*
 * The runtime's samples of a thread, for the time when /proc was read; NULL: it has no managed
 * frames, or has left them.
 */
static const struct seen *seen_now(const struct taking *t, uint64_t inner_tid)
{
	uint32_t at = map_get(&t->seen_index, inner_tid);
	const struct seen *seen = at ? &t->seen.items[at - 1] : NULL;

	return seen && t->looked_tick < seen->tick + TICKS_STALE ? seen : NULL;
}

/*
 * Whether an event is of a time before /proc was read for its thread. What arrived before that is.
 */
static bool is_before(const struct taking *t, const struct seen *seen, uint64_t time_ns)
{
	return !t->looked || (!t->own_clock && seen->looked_ns && time_ns <= seen->looked_ns);
}

static void take_sample(struct taking *t, struct seen *seen, const struct event *event)
{
	struct cursor c = cursor_of(event->payload, event->payload_size);
	uint32_t type = cursor_u32(&c);

	t->sampled = true;
	if (seen->tick == t->tick)
		t->tick++;
	seen->tick = t->tick;
	if (c.short_read)
		return;
	struct moment moment = {
		.time_ns = event->time_ns,
		.stack = event->stack_index,
		.mode = type == 2 ? THREAD_MANAGED : THREAD_NATIVE,
	};

	if (!is_before(t, seen, event->time_ns)) {
		if (!seen->after.mode)
			seen->after = moment;
		return;
	}
	/*
	 * The last one is nearest to what /proc shows. The runtime sends the thread's own events in
	 * other buffers, so their order may differ from that of their times.
	 */
	if (event->time_ns < seen->before.time_ns)
		return;
	moment.lock = seen->before.lock;
	moment.lock_owner = seen->before.lock_owner;
	seen->before = moment;
}

/*
 * The thread begins to wait for a lock: the event's stack shows where, and its payload has the
 * lock's owner (.NET 7 and later).
 */
static void take_contention(struct taking *t, struct seen *seen, const struct event *event)
{
	struct cursor c = cursor_of(event->payload, event->payload_size);

	(void)cursor_u8(&c); /* flags: the kind of lock */
	(void)cursor_u16(&c);
	(void)cursor_u64(&c); /* LockID: the runtime's own address */
	uint64_t object = cursor_u64(&c);
	uint64_t owner = cursor_u64(&c);

	if (c.short_read || !is_before(t, seen, event->time_ns))
		return;
	seen->tick = t->tick;
	seen->before.lock = object;
	seen->before.lock_owner = owner;
	if (event->stack_index && event->time_ns >= seen->before.time_ns) {
		seen->before.stack = event->stack_index;
		seen->before.time_ns = event->time_ns;
		seen->before.mode = THREAD_NATIVE;
		seen->before.over = false;
	}
}

static void end_contention(struct taking *t, struct seen *seen, const struct event *event)
{
	if (!is_before(t, seen, event->time_ns))
		return;
	seen->before.over =
		seen->before.over || (seen->before.lock && seen->before.time_ns <= event->time_ns);
	seen->before.lock = seen->before.lock_owner = 0;
}

static void take_event(void *user, const struct schema *schema, const struct event *event,
	struct diag *broken)
{
	struct taking *t = user;
	struct seen *seen = NULL;

	(void)broken; /* a thread that is not seen has no managed frames */
	if (schema->provider_kind == PROVIDER_CLR_RUNDOWN) {
		/* A body that cannot be taken costs its own name only. */
		(void)clr_absorb_method(&t->codemap, 1, schema->event_id, schema->version,
			event->time_ns, event->payload, event->payload_size);
		return;
	}
	if (event->thread_index)
		seen = seen_of(t, t->session.trace.threads.items[event->thread_index].tid);
	if (!seen)
		return;
	if (schema->provider_kind == PROVIDER_SAMPLE && schema->event_id == CLR_THREAD_SAMPLE) {
		take_sample(t, seen, event);
	} else if (schema->provider_kind == PROVIDER_CLR &&
		   schema->event_id == CLR_ID_ContentionStart_V1) {
		take_contention(t, seen, event);
	} else if (schema->provider_kind == PROVIDER_CLR &&
		   schema->event_id == CLR_ID_ContentionStop) {
		end_contention(t, seen, event);
	}
}

/* ---- /proc ---- */

static int take_mapping(void *user, const struct proc_mapping *mapping)
{
	struct taking *t = user;
	struct code_mapping *own = vec_push(&t->mappings);

	if (!own)
		return -ENOMEM;
	*own = (struct code_mapping){
		.begin = mapping->begin,
		.end = mapping->end,
		.file_offset = mapping->file_offset,
		.inode = mapping->inode,
		.device = (uint64_t)mapping->device_major << 32 | mapping->device_minor,
		.path = strtab_add(&t->dump->texts, mapping->path, mapping->path_len),
	};
	return 0;
}

static const struct code_mapping *mapping_of(const struct taking *t, uint64_t address)
{
	uint32_t low = 0;
	uint32_t high = t->mappings.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (t->mappings.items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->mappings.count && t->mappings.items[low].begin <= address
		       ? &t->mappings.items[low]
		       : NULL;
}

/* ---- frames in a stack ---- */

static const char *base_name(const struct taking *t, const struct code_mapping *mapping)
{
	const char *path = strtab_get(&t->dump->texts, mapping->path);
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_return(void *context, uint64_t address, uint64_t *ret_target)
{
	const struct taking *t = context;
	const struct code_mapping *mapping = mapping_of(t, address);
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
	const struct taking *t = context;
	const struct code_mapping *mapping = mapping_of(t, address);
	const char *name = mapping ? base_name(t, mapping) : "";

	return strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0 ||
	       strncmp(name, "libpthread", 10) == 0 || strncmp(name, "ld-musl", 7) == 0;
}

/*
 * The stack is valid if the thread was in the same system call before and after it was read: then
 * the thread did not run in between.
 */
static void walk(struct taking *t, const struct thread_state *state, struct walked *walked)
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
	if (t->memory_fd < 0 || !t->stack || !state->sp || state->state == 'R' || state->sp % 8)
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

static void walk_all(struct taking *t)
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

static uint64_t first_switches(const struct taking *t, uint32_t tid)
{
	uint32_t at = map_get(&t->first_index, tid);

	return at ? t->first.items[at - 1].switches : 0;
}

/* Read before the session opens: a thread that did not run until then waited at one place. */
static void read_first_switches(struct taking *t)
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
static bool stood_before(const struct thread_state *state, const struct steps *steps)
{
	return state->switches && steps->first == state->switches;
}

static struct frame_evidence evidence_of(const struct taking *t, uint32_t number)
{
	const struct thread_state *state = &t->states.items[number];
	const struct steps *steps = &t->steps.items[number];
	const struct seen *seen = seen_now(t, state->thread.inner_tid);
	const struct walked *walked = number < t->walks.count && t->walks.items[number].count
					      ? &t->walks.items[number]
					      : NULL;

	return (struct frame_evidence){
		.runs = state->state == 'R',
		.walked = walked != NULL,
		.walked_managed = walked && walked->moment.mode,
		.skipped = walked ? walked->skipped : 0,
		.before = seen && seen->before.mode && !seen->before.over,
		.before_proved = stood_before(state, steps),
		.after = seen && seen->after.mode,
		.after_proved = seen && !t->own_clock && state->switches &&
				steps->last == state->switches &&
				seen->after.time_ns >= steps->looked_ns &&
				seen->after.time_ns <= steps->last_ns,
	};
}

/* Some thread's frames may not be of the moment of /proc: one more sample could prove it. */
static bool needs_settling(const struct taking *t)
{
	for (uint32_t i = 0; i < t->states.count && i < t->steps.count; i++) {
		const struct frame_evidence evidence = evidence_of(t, i);
		if (seen_now(t, t->states.items[i].thread.inner_tid) &&
			frame_evidence_needs_more(&evidence))
			return true;
	}
	return false;
}

static void settle(struct taking *t)
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
static void look(struct taking *t)
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
		struct thread_state *state = vec_push(&t->states);
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

/* ---- names ---- */

static uint32_t add_text(struct taking *t, const char *text)
{
	return strtab_add_z(&t->dump->texts, text);
}

static uint32_t unnamed(struct taking *t, uint64_t address)
{
	bytes_reset(&t->text);
	bytes_printf(&t->text, "0x%" PRIx64, address);
	return add_text(t, bytes_z(&t->text));
}

/* The long name into the scratch, and the short one as a text of the dump. */
static uint32_t add_method(struct taking *t, const struct method_name *name)
{
	bytes_reset(&t->text);
	method_name_format(name, METHOD_NAME_SHORT, &t->text);
	uint32_t short_name = add_text(t, bytes_z(&t->text));

	bytes_reset(&t->text);
	method_name_format(name, METHOD_NAME_LONG, &t->text);
	return short_name;
}

/* A managed frame; 0: the address is in no method's code. */
static uint32_t managed_frame(struct taking *t, uint64_t address, uint64_t time_ns)
{
	cleanup(bytes_done) struct bytes raw = { 0 };
	struct method_name name;
	struct dump_frame frame = { 0 };
	size_t module_len;
	const struct code *code = codemap_find(&t->codemap, address, time_ns);

	if (!code)
		return 0;
	codemap_symbol_text(&t->codemap, code, true, &raw);
	bytes_reset(&t->text);
	if (method_name_parse(bytes_z(&raw), raw.len, &name))
		frame.short_name = add_method(t, &name);
	else
		bytes_text(&t->text, bytes_z(&raw));
	const char *module = codemap_assembly(&t->codemap, code->module_id, &module_len);

	frame.name = add_text(t, bytes_z(&t->text));
	frame.module = module_len ? strtab_add(&t->dump->texts, module, module_len)
		       : code->kind == CODE_DYNAMIC ? add_text(t, "dynamic")
						    : 0;
	frame.kind = code->kind == CODE_READYTORUN ? FUNCTION_READYTORUN : FUNCTION_JIT;
	return thread_dump_frame(t->dump, &frame);
}

/* One file, one number, for as long as we live. */
static uint32_t image_of(struct thread_stacks *stacks, const struct code_mapping *mapping)
{
	uint64_t key = hash_u64(mapping->device ^ hash_u64(mapping->inode));
	uint32_t image = map_get(&stacks->image_index, key);

	if (image)
		return image;
	return map_put(&stacks->image_index, key, ++stacks->image_count) ? stacks->image_count : 0;
}

static uint32_t native_frame(struct taking *t, uint64_t address)
{
	const struct code_mapping *mapping = mapping_of(t, address);
	struct dump_frame frame = { .kind = FUNCTION_NATIVE };
	struct name_answer answer = { 0 };
	const char *path = mapping ? strtab_get(&t->dump->texts, mapping->path) : "";
	enum mapping_kind mapped = mapping_kind_of(path);

	if (mapped == MAPPING_JIT) {
		/* Code in runtime memory for which the sampled runtime sent no method is a stub. */
		frame.name = mapping ? add_text(t, t->sampled ? "(stub)" : "(compiled at run time)")
				     : unnamed(t, address);
		frame.kind = !mapping     ? FUNCTION_UNKNOWN
			     : t->sampled ? FUNCTION_STUB
					  : FUNCTION_JIT;
		return thread_dump_frame(t->dump, &frame);
	}
	const char *name = base_name(t, mapping);
	bool managed = mapped == MAPPING_MANAGED_IMAGE;
	uint64_t offset = address - mapping->begin + mapping->file_offset;
	struct name_question question = {
		.kind = managed ? ASK_METHOD : ASK_SYMBOL,
		.image = mapping->inode ? image_of(t->stacks, mapping) : 0,
		.place = offset,
		.pid = t->target->pid,
		.inner_pid = t->target->inner_pid,
		.begin = mapping->begin,
		.end = mapping->end,
		.inode = mapping->inode,
		.path = (char *)path, /* read only */
		.build_id = (char *)"",
	};
	struct method_name method;

	if (question.image)
		name_tables_answer(t->stacks->tables, &question, &answer);
	bytes_reset(&t->text);
	if (!answer.found || !answer.name)
		bytes_printf(&t->text, "%s+0x%" PRIx64, name, offset);
	else if (managed && method_name_parse(answer.name, strlen(answer.name), &method))
		frame.short_name = add_method(t, &method);
	else
		bytes_printf(&t->text, "%s%s%s", answer.bounds_only ? name : "",
			answer.bounds_only ? "!" : "", answer.name);
	free(answer.name);
	free(answer.facts);
	frame.name = add_text(t, bytes_z(&t->text));
	frame.module = strtab_add(&t->dump->texts, name,
		managed ? (size_t)(strrchr(name, '.') - name) : strlen(name));
	if (managed)
		frame.kind = FUNCTION_READYTORUN;
	return thread_dump_frame(t->dump, &frame);
}

static uint32_t kernel_frame(struct taking *t, const char *name, size_t len)
{
	const struct dump_frame frame = {
		.name = strtab_add(&t->dump->texts, name, len),
		.module = add_text(t, "kernel"),
		.kind = FUNCTION_KERNEL,
	};

	return thread_dump_frame(t->dump, &frame);
}

/* ---- the result ---- */

struct building {
	uint64_t frames[FRAMES_ROOM];
	uint32_t count;
};

static void add_frame(struct building *building, uint32_t frame)
{
	if (frame && building->count < FRAMES_ROOM)
		building->frames[building->count++] = frame;
}

/*
 * A method that was replaced while it ran (on-stack replacement) leaves its first body's record
 * below the new one's. The runtime counts the two as one frame, and a recursive call as two.
 */
static bool is_replaced(const struct building *building, uint32_t frame, uint64_t address,
	const uint64_t *managed, uint32_t managed_count)
{
	for (uint32_t i = 0; i < managed_count; i++) {
		if (managed[i] == address)
			return false;
	}
	return managed_count && building->count && building->frames[building->count - 1] == frame;
}

static void add_kernel(struct taking *t, const struct thread_state *state,
	struct building *building)
{
	for (const char *at = state->kernel; *at;) {
		size_t len = strcspn(at, "\n");
		add_frame(building, kernel_frame(t, at, len));
		at += len + (at[len] != '\0');
	}
	if (!building->count && *state->function)
		add_frame(building, kernel_frame(t, state->function, strlen(state->function)));
}

static void add_gap(struct taking *t, struct building *building)
{
	const struct dump_frame gap = { .name = add_text(t, "[native frames]"), .gap = true };

	add_frame(building, thread_dump_frame(t->dump, &gap));
}

/* One address of a sample, or of a walk. */
static uint32_t frame_at(struct taking *t, uint64_t address, bool leaf, uint64_t time_ns)
{
	/* All but a running leaf are return addresses: the call is before it. */
	uint32_t frame = leaf ? managed_frame(t, address, time_ns) : 0;

	if (!frame)
		frame = managed_frame(t, address - 1, time_ns);
	return frame ? frame : native_frame(t, address - 1);
}

/* The managed frames to show for a thread; NULL: none. See frame_evidence_choose(). */
static const struct moment *choose_moment(const struct taking *t, uint32_t number, bool *ret_moved)
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

static void build_thread(struct taking *t, uint32_t number)
{
	const struct thread_state *state = &t->states.items[number];
	struct walked walked =
		number < t->walks.count ? t->walks.items[number] : (struct walked){ 0 };
	bool moved;
	const struct moment *moment = choose_moment(t, number, &moved);
	const struct seen *seen = seen_now(t, state->thread.inner_tid);
	struct building building = { .count = 0 };
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
	thread->name = add_text(t, state->thread.comm);
	thread->syscall = add_text(t, state->name);
	thread->function = add_text(t, state->function);
	thread->object = add_text(t, state->object);
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
			add_frame(&building, native_frame(t, state->pc));
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

static void name_owners(struct taking *t)
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

static bool is_refused(const struct taking *t)
{
	return reason_word_is(eventpipe_reason_code(t->session.pipe), REASON_KIND_PERMISSION);
}

static void finish(struct taking *t)
{
	const char *reason = "";
	char version[64];

	if (!t->looked)
		look(t);
	if (t->settle_ns && !t->settled)
		settle(t);
	if (event_session_version(&t->session, version, sizeof(version)))
		t->dump->runtime_version = add_text(t, version);
	if (t->session.pipe) {
		reason = eventpipe_reason(t->session.pipe);
		t->dump->refused = is_refused(t);
	}
	codemap_settle(&t->codemap);
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
		t->dump->unsampled_reason = add_text(t, reason);
	t->dump->lost_events = event_session_lost(&t->session);
	t->dump->took_ns = clock_monotonic_ns() - t->begin_ns;
}

/* Payloads name the locks that are waited for: not if only borrowed rights reach the process. */
static int open_pipe(struct taking *t)
{
	t->providers[0] = (struct ipc_provider){ .name = PROVIDER_SAMPLE_NAME, .level = 4 };
	t->providers[1] = (struct ipc_provider){
		.name = PROVIDER_CLR_NAME, .keywords = KEYWORD_CONTENTION, .level = 4
	};
	const struct dotnet_door door = dotnet_target_door(&t->port);
	const struct eventpipe_options options = {
		.providers = t->providers,
		.provider_count = t->port.borrows ? 1 : 2,
		.buffer_mb = BUFFER_MB,
		.rundown_keywords = CLR_KEYWORD_LOADER | CLR_KEYWORD_JIT,
		.guard = t->stacks->options.guard,
		.target = &t->port,
	};
	const struct event_reading reading = {
		.take = take_event, .user = t, .name = "the threads' stacks"
	};

	return event_session_open(&t->session, &door, &options, &reading);
}

/*
 * The caller's own rights are not enough to connect; those of Spoor's file capabilities may be.
 * True when a second session was begun.
 */
static bool borrow(struct taking *t)
{
	if (t->port.borrows || !rights_are_borrowed() || !is_refused(t))
		return false;
	t->port.borrows = t->dump->values_withheld = true;
	return open_pipe(t) == 0; /* without memory it has no managed frames */
}

static int begin(struct taking *t)
{
	struct diag diag = { 0 };
	int result = thread_dump_init(t->dump);

	t->begin_ns = clock_monotonic_ns();
	t->dump->utc_ns = clock_utc_ns();
	t->dump->pid = t->target->pid;
	t->dump->name = add_text(t, t->target->name);
	if (result < 0)
		return result;
	if (dotnet_target_read(t->target->pid, &t->port, &diag) < 0)
		return 0; /* shows in the dump, which then has no threads */
	read_first_switches(t);
	return open_pipe(t);
}

static bool is_over(const struct taking *t)
{
	return event_session_is_over(&t->session) ||
	       (t->stopping && eventpipe_state(t->session.pipe) == EVENTPIPE_HUNG);
}

/* The next step for a process after its EventPipe session has been advanced. */
static void step(struct taking *t, bool interrupted, uint64_t now)
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
static bool turn(struct thread_stacks *stacks, struct taking *takings, size_t count,
	struct poll_set *set, bool *interrupted)
{
	struct pollfd *watched = *interrupted ? NULL : stacks->options.watched;
	bool open = false;

	poll_set_begin(set, clock_monotonic_ns() + TURN_NS);
	for (size_t i = 0; i < count; i++) {
		if (is_over(&takings[i]))
			continue;
		event_session_await(&takings[i].session, set);
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
		/* the state is checked in step() */
		(void)event_session_advance(&takings[i].session, now);
		step(&takings[i], *interrupted, now);
	}
	return true;
}

static void done(struct taking *t)
{
	event_session_close(&t->session);
	codemap_done(&t->codemap);
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
	struct taking *takings = calloc(count + 1, sizeof(*takings));
	struct poll_set set = { 0 };
	bool interrupted = false;
	int result = takings ? 0 : -ENOMEM;

	memset(dumps, 0, count * sizeof(*dumps));
	for (size_t i = 0; result == 0 && i < count; i++) {
		takings[i].stacks = stacks;
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
		stacks->tables = name_tables_new(&box, NULL);
	if (result == 0 && !stacks->tables)
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
	name_tables_free(stacks->tables);
	proc_close(&stacks->proc);
	map_done(&stacks->image_index);
	free(stacks);
}
