/*
 * Each sampled thread has a slot. A slot belongs to the loop thread, except for the members that
 * the thread's signal handler writes: the frames of the last sample, guarded by `version` (odd
 * while they change), and `samples`. A slot is never freed, because a signal for it may be pending;
 * with `thread_id` 0 it is free.
 */
#include "lib/sampler/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event/firing.h"
#include "lib/event/provider.h"
#include "lib/pipe/pipe_session.h"
#include "lib/pipe/session_emit.h"
#include "lib/pipe/session_state.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"

/* The payload of a sample. */
enum sample_kind {
	SAMPLE_EXTERNAL = 1,
	SAMPLE_RUNNING = 2,
};

struct sampler_slot {
	uint64_t thread_id;
	void *timer;
	uintptr_t stack_low; /* bounds of the stack; used by the signal handler only */
	uintptr_t stack_high;
	uint32_t version;
	uint32_t frame_count;
	uint64_t frames[SAMPLER_FRAMES_MAX];
	uint64_t samples;
	/* Used by the loop thread only. */
	uint64_t samples_seen;
	uint64_t cpu_ns;
	uint64_t external_ns; /* time of its last sample as external; 0: it is running */
	bool alive;           /* seen by the current scan */
};

static struct sampler_slot *slots[SAMPLER_THREADS_MAX];
static unsigned slot_count;
static struct loop_timer sampler_timer;
static uint64_t scan_due_ns;
static bool sampling;
static uint64_t loop_thread_id;

static struct spoor_provider sampler_provider;
static const struct spoor_field sample_fields[] = { { "Type", SPOOR_TYPE_U32, 0, NULL } };
static struct spoor_event sample_event = { .size = sizeof(struct spoor_event),
	.provider = &sampler_provider,
	.name = "ThreadSample",
	.fields = sample_fields,
	.field_count = 1,
	.id = 0,
	.level = SPOOR_INFO,
	.flags = SPOOR_EVENT_WELL_KNOWN };
static struct spoor_event *const sampler_events[] = { &sample_event };

/*
 * Walks the interrupted thread's stack by frame pointers. Each frame must be at a higher address
 * than the one before, aligned, and in the mapping of the stack. In the first instructions of a
 * function, and in a function without a frame, the caller's address is on top of the stack.
 */
__attribute__((no_sanitize("address", "thread", "undefined"))) static uint32_t
sampler_walk(struct sampler_slot *slot, const struct sampler_registers *registers,
	uint64_t frames[SAMPLER_FRAMES_MAX])
{
	uintptr_t frame = (uintptr_t)registers->frame;
	uintptr_t stack = (uintptr_t)registers->stack;
	uint32_t count = 0;

	frames[count++] = registers->instruction;
	/*
	 * The mapping is that of the stack pointer, so a register with another value is neither
	 * followed nor looked up.
	 */
	if ((stack < slot->stack_low || stack >= slot->stack_high) &&
		!platform_memory_around(stack, &slot->stack_low, &slot->stack_high)) {
		slot->stack_low = slot->stack_high = 0;
		return count;
	}
	/*
	 * A function without calls may have no frame. Its caller is then on top of the stack and
	 * not in the chain.
	 */
	if (!(stack & (sizeof(uintptr_t) - 1)) && stack <= slot->stack_high - sizeof(uintptr_t)) {
		uintptr_t top = *(const uintptr_t *)stack;
		bool chained = frame > stack && frame <= slot->stack_high - 2 * sizeof(uintptr_t) &&
			       !(frame & (sizeof(uintptr_t) - 1)) &&
			       ((const uintptr_t *)frame)[1] == top;
		if (!chained && sampler_system_called_from(top, registers->instruction))
			frames[count++] = top;
	}
	if (frame < stack || slot->stack_high - slot->stack_low < 2 * sizeof(uintptr_t))
		return count;
	uintptr_t end = slot->stack_high - 2 * sizeof(uintptr_t);
	while (count < SAMPLER_FRAMES_MAX && frame && !(frame & (sizeof(uintptr_t) - 1)) &&
		frame <= end) {
		uintptr_t caller = ((const uintptr_t *)frame)[0];
		uintptr_t address = ((const uintptr_t *)frame)[1];
		if (address < 4096)
			break;
		frames[count++] = address;
		if (caller <= frame)
			break;
		frame = caller;
	}
	return count;
}

/* The signal handler, in the thread that is sampled. */
static void sampler_sample(void *context, const struct sampler_registers *registers)
{
	struct sampler_slot *slot = context;
	uint64_t frames[SAMPLER_FRAMES_MAX];
	static const uint32_t kind = SAMPLE_RUNNING;

	if (!spoor_event_enabled(&sample_event) ||
		__atomic_load_n(&slot->thread_id, __ATOMIC_ACQUIRE) == 0)
		return;
	uint32_t count = sampler_walk(slot, registers, frames);
	pipe_fire(&sample_event, UINT64_MAX, &kind, sizeof(kind), frames, count);

	uint32_t version = __atomic_load_n(&slot->version, __ATOMIC_RELAXED);
	/*
	 * The release stores keep the odd version before the guarded data; the acquire loads in
	 * slot_frames() keep the second read of the version after it.
	 */
	__atomic_store_n(&slot->version, version + 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < count; i++)
		__atomic_store_n(&slot->frames[i], frames[i], __ATOMIC_RELEASE);
	__atomic_store_n(&slot->frame_count, count, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->version, version + 2, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->samples, slot->samples + 1, __ATOMIC_RELAXED);
}

/* The frames of the thread's last sample; 0: they are being changed. */
static uint32_t slot_frames(const struct sampler_slot *slot, uint64_t frames[SAMPLER_FRAMES_MAX])
{
	uint32_t version = __atomic_load_n(&slot->version, __ATOMIC_ACQUIRE);
	uint32_t count = __atomic_load_n(&slot->frame_count, __ATOMIC_ACQUIRE);

	if ((version & 1) || count > SAMPLER_FRAMES_MAX)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		frames[i] = __atomic_load_n(&slot->frames[i], __ATOMIC_ACQUIRE);
	return __atomic_load_n(&slot->version, __ATOMIC_RELAXED) == version ? count : 0;
}

static void slot_stop(struct sampler_slot *slot)
{
	if (slot->timer)
		sampler_system_stop(slot->timer);
	slot->timer = NULL;
	__atomic_store_n(&slot->thread_id, 0, __ATOMIC_RELAXED);
}

/* A thread of the process: marks its slot as alive, or gives it one. */
static void sampler_thread(uint64_t thread_id, void *context)
{
	struct sampler_slot *slot = NULL;

	(void)context;
	if (thread_id == loop_thread_id)
		return;
	for (unsigned i = 0; i < slot_count; i++) {
		if (slots[i]->thread_id == thread_id) {
			slots[i]->alive = true;
			return;
		}
		if (!slots[i]->thread_id && !slot)
			slot = slots[i];
	}
	if (!slot && slot_count < SAMPLER_THREADS_MAX) {
		slot = calloc(1, sizeof(*slot));
		if (slot)
			slots[slot_count++] = slot;
	}
	if (!slot)
		return;
	slot->stack_low = slot->stack_high = 0;
	__atomic_store_n(&slot->frame_count, 0, __ATOMIC_RELAXED);
	slot->samples_seen = slot->samples;
	slot->external_ns = 0;
	slot->alive = true;
	if (!sampler_system_cpu(thread_id, &slot->cpu_ns))
		return;
	/* the handler sees the stores above */
	__atomic_store_n(&slot->thread_id, thread_id, __ATOMIC_RELEASE);
	/* The thread has ended meanwhile, or no timer is available: the next scan tries again. */
	if (sampler_system_start(thread_id, SAMPLER_PERIOD_NS, slot, &slot->timer) < 0)
		slot_stop(slot);
}

static void sampler_external(struct sampler_slot *slot, uint64_t now_ns)
{
	static const uint32_t kind = SAMPLE_EXTERNAL;
	uint64_t frames[SAMPLER_FRAMES_MAX];
	uint32_t count = slot_frames(slot, frames);
	uint64_t sessions = __atomic_load_n(&sample_event.sessions, __ATOMIC_RELAXED);

	if (!count)
		return;
	for (unsigned bit = 0; bit < SESSIONS_MAX; bit++) {
		struct session *session = sessions >> bit & 1 ? session_active[bit] : NULL;
		const struct event_entry *entry = registry_entry(sample_event.index);
		if (session && entry)
			/* One that the sink refuses is counted as lost. */
			(void)session_emit_counted(session, entry, now_ns, slot->thread_id, &kind,
				sizeof(kind), frames, count);
	}
	slot->external_ns = now_ns;
}

static void sampler_look(struct loop_timer *timer)
{
	uint64_t now_ns = platform_now_ns();

	if (!sampling)
		return;
	if (now_ns >= scan_due_ns) {
		for (unsigned i = 0; i < slot_count; i++)
			slots[i]->alive = false;
		sampler_system_threads(sampler_thread, NULL);
		for (unsigned i = 0; i < slot_count; i++)
			if (slots[i]->thread_id && !slots[i]->alive)
				slot_stop(slots[i]);
		/*
		 * With thousands of threads a scan takes long: at most 1/20 of the loop's time is
		 * used for scans.
		 */
		uint64_t took_ns = platform_now_ns() - now_ns;
		scan_due_ns =
			now_ns + (took_ns * 20 > SAMPLER_SCAN_NS ? took_ns * 20 : SAMPLER_SCAN_NS);
	}
	for (unsigned i = 0; i < slot_count; i++) {
		struct sampler_slot *slot = slots[i];
		uint64_t cpu_ns, samples = __atomic_load_n(&slot->samples, __ATOMIC_RELAXED);
		if (!slot->thread_id || !sampler_system_cpu(slot->thread_id, &cpu_ns))
			continue;
		bool ran = cpu_ns != slot->cpu_ns;
		slot->cpu_ns = cpu_ns;
		if (samples != slot->samples_seen) {
			slot->samples_seen = samples;
			slot->external_ns = 0;
		}
		if (!ran && samples &&
			(!slot->external_ns || now_ns - slot->external_ns >= SAMPLER_AGAIN_NS))
			sampler_external(slot, now_ns);
	}
	loop_timer_set(timer, now_ns + SAMPLER_LOOK_NS);
}

/* Starts or stops sampling, on the loop thread, when sessions change. */
static void sampler_switch(void *context)
{
	bool wanted = spoor_event_enabled(&sample_event);

	(void)context;
	if (wanted == sampling)
		return;
	if (wanted && sampler_system_prepare(sampler_sample) < 0)
		return;
	sampling = wanted;
	if (wanted) {
		loop_thread_id = platform_thread_id();
		scan_due_ns = 0;
		sampler_timer.expired = sampler_look;
		sampler_look(&sampler_timer);
		return;
	}
	loop_timer_clear(&sampler_timer);
	for (unsigned i = 0; i < slot_count; i++)
		if (slots[i]->thread_id)
			slot_stop(slots[i]);
}

static void sampler_enable(const struct spoor_enable *what, void *context)
{
	(void)what;
	(void)context;
	/* The masks are set already; sampler_switch() reads them when the loop calls it. */
	(void)loop_post(sampler_switch, NULL);
}

static int sampler_start(const struct spoor_options *options)
{
	(void)options;
	sampler_provider = (struct spoor_provider){
		.size = sizeof(sampler_provider),
		.name = "Microsoft-DotNETCore-SampleProfiler",
		.events = sampler_events,
		.events_end = sampler_events + 1,
		.enable = sampler_enable,
	};
	return registry_add_unlogged(&sampler_provider);
}

static void sampler_stop(void)
{
	spoor_provider_unregister(&sampler_provider);
	(void)loop_call(sampler_switch, NULL);
}

/* The child has no timers, and only the thread that called fork(). */
static void sampler_child(void)
{
	for (unsigned i = 0; i < slot_count; i++) {
		free(slots[i]->timer);
		slots[i]->timer = NULL;
		slots[i]->thread_id = 0;
	}
	sampling = false;
}

const struct module sampler_module = {
	.name = "sampler",
	.start = sampler_start,
	.stop = sampler_stop,
	.child = sampler_child,
};
